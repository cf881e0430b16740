package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/docs"
	"strait.io/strait/internal/problem"
)

var (
	problemCode = regexp.MustCompile(`^(?i)STR[0-9]+$`)
	pageLink    = regexp.MustCompile(`\[([^]]*)\]\(([^)]*)\)`)
)

// explainProblems lets `strait help` take the code of a Problem where it takes a command.
func explainProblems(help *cobra.Command) {
	args, run := help.Args, help.Run
	help.Args = func(cmd *cobra.Command, words []string) error {
		if len(words) == 1 && problemCode.MatchString(words[0]) {
			return nil
		}
		return args(cmd, words)
	}
	help.ValidArgsFunction = completeCodes(help.ValidArgsFunction)
	help.Run = nil
	help.RunE = func(cmd *cobra.Command, words []string) error {
		if len(words) != 1 || !problemCode.MatchString(words[0]) {
			run(cmd, words)
			return nil
		}
		code := problem.Code(strings.ToUpper(words[0]))
		section, found := docs.Problem(code)
		if !found {
			return cli.UsageError("no problem has the code %s; docs/problems.md lists all codes", code)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), plainText(section))
		return err
	}
}

// completeCodes offers the codes of problems after what else help offers.
func completeCodes(others cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var out []string
		if others != nil {
			out, _ = others(cmd, args, prefix)
		}
		if len(args) == 0 && strings.HasPrefix(strings.ToUpper(prefix), "STR") {
			for _, code := range docs.Codes() {
				if strings.HasPrefix(string(code), strings.ToUpper(prefix)) {
					out = append(out, string(code))
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// plainText turns a section of Markdown into text for a terminal.
func plainText(section string) string {
	section = pageLink.ReplaceAllString(section, "$1 (docs/$2)")
	return strings.NewReplacer("**", "", "`", "").Replace(section)
}

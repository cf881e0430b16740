package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// shape is the annotation of commands whose answer has more formats than others.
const shape = "shape"

const (
	// list is the shape of rows that have names and a wide form.
	list = "list"
	// wide is the shape of an answer with a table that has a wide form.
	wide = "wide"
)

// Wide lets a command take -o wide.
func Wide(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{shape: wide}
	return cmd
}

// Listing lets a command take -o name and -o wide.
func Listing(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{shape: list}
	return cmd
}

// pathPrefix begins the format that has a template.
const pathPrefix = "jsonpath="

// formats are the values of --output that a command takes.
func formats(cmd *cobra.Command) []string {
	switch cmd.Annotations[shape] {
	case list:
		return []string{"table", "wide", "name", "json", "yaml", pathPrefix + "TEMPLATE"}
	case wide:
		return []string{"table", "wide", "json", "yaml", pathPrefix + "TEMPLATE"}
	}
	return []string{"table", "json", "yaml", pathPrefix + "TEMPLATE"}
}

// CheckOutput checks the flag --output before anything is asked.
func (a *App) CheckOutput(cmd *cobra.Command) error {
	if template, is := strings.CutPrefix(a.Output, pathPrefix); is {
		_, err := parsePath(template)
		return err
	}
	known := formats(cmd)
	if last := len(known) - 1; !slices.Contains(known[:last], a.Output) {
		return UsageError("unknown --output %q; use %s or %s", a.Output, strings.Join(known[:last], ", "), known[last])
	}
	return nil
}

// CompleteOutput offers the formats.
func (a *App) CompleteOutput(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	known := formats(cmd)
	known[len(known)-1] = pathPrefix
	return known, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// parsePath reads a template as kubectl does: braces around a single path, and its first dot, can
// be left out.
func parsePath(template string) (*jsonpath.JSONPath, error) {
	text := template
	if !strings.Contains(text, "{") {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	path := jsonpath.New("output")
	if err := path.Parse(text); err != nil {
		return nil, UsageError("--output %s%s: %v", pathPrefix, template, err)
	}
	return path, nil
}

// Data prints an answer as data if --output asks for it, and reports whether it does.
func (a *App) Data(answer any) (done bool, err error) {
	var text []byte
	template, isPath := strings.CutPrefix(a.Output, pathPrefix)
	switch {
	case a.Output == "json":
		text, err = json.MarshalIndent(answer, "", "  ")
		text = append(text, '\n')
	case a.Output == "yaml":
		text, err = yaml.Marshal(answer)
	case isPath:
		text, err = follow(template, answer)
	default:
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("print the answer as %s: %w", a.Output, err)
	}
	if _, err = a.Stdout.Write(text); err != nil {
		return true, fmt.Errorf("write the answer: %w", err)
	}
	return true, nil
}

// follow executes a template on the JSON of an answer, so that fields have the names of -o json.
// What comes from other clusters cannot control the terminal.
func follow(template string, answer any) ([]byte, error) {
	path, err := parsePath(template)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := path.Execute(&out, tree); err != nil {
		return nil, err
	}
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		clean, _ := utf8.DecodeRuneInString(Clean(string(r)))
		return clean
	}, out.Bytes()), nil
}

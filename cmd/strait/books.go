//go:build books

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"strait.io/strait/cli"
)

// main writes what a release has beside the program: the shells' completions, and a manual page for each
// command, dated by SOURCE_DATE_EPOCH:
//
//	go run -tags books ./cmd/strait DIR VERSION
//
// It is a program of its own, because what writes manual pages makes the linker keep 27 MB more.
func main() {
	err := errors.New("it needs a folder and a version")
	if len(os.Args) == 3 {
		err = write(os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "books: %v\n", err)
		os.Exit(1)
	}
}

func write(dir, version string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	when := time.Unix(seconds, 0).UTC()
	completions, man := filepath.Join(dir, "completions"), filepath.Join(dir, "man")
	for _, d := range []string{completions, man} {
		if err := errors.Join(os.RemoveAll(d), os.MkdirAll(d, 0o755)); err != nil {
			return err
		}
	}
	// Defaults of flags come from the environment.
	root := newRoot(env{App: cli.App{Getenv: func(string) string { return "" }, Program: "strait", Version: version}})
	root.Long += "\n\n```\n" + cli.ExitCodes + "```"
	unsigned(root)
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(completions, "strait.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_strait")),
		root.GenFishCompletionFile(filepath.Join(completions, "strait.fish"), true),
		root.GenPowerShellCompletionFileWithDesc(filepath.Join(completions, "strait.ps1")),
		doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{
			Path: man, CommandSeparator: "-",
			Header: &doc.GenManHeader{Section: "1", Date: &when, Source: "strait " + version, Manual: "strait"},
		}),
	)
}

// unsigned leaves out the line that says which program made a page, and when.
func unsigned(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, below := range c.Commands() {
		unsigned(below)
	}
}

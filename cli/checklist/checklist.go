// Package checklist prints the outcome of checks, and gives the exit code for it.
//
// Inputs are checks (package check) and the format that a person chose; outputs are text, data, and
// an error with the exit code. It must not know who made the checks, nor of what.
package checklist

import (
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/cli/check"
	"strait.io/strait/daemon/api"
)

// Formats are the values of --output besides table.
var Formats = []string{"json", "yaml", "short", "junit"}

// list is the data of a checklist.
type list struct {
	api.Meta
	Items []check.Check `json:"items"`
}

// Show prints the checks. If one failed, or could not be made, its error has the exit code
// and no text.
func Show(a *cli.App, checks []check.Check, format string) error {
	var err error
	switch format {
	case "table", "short":
		printTable(a.Printer(), checks, format == "short")
	case "junit":
		err = writeJUnit(a, checks)
	case "json", "yaml":
		one := *a
		one.Output = format
		_, err = one.Data(list{api.Meta{APIVersion: api.APIVersion, Kind: "CheckList"}, checks})
	default:
		return cli.UsageError("unknown --output %q; use table, %s", format, strings.Join(Formats, ", "))
	}
	if err != nil {
		return err
	}
	switch check.Worst(checks) {
	case check.Failed:
		return cli.Exit(cli.ExitProblem, nil)
	case check.Unknown:
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}

// Glyphs mark the outcome of a check.
var Glyphs = map[check.State]string{check.OK: api.OK, check.Warning: api.Warn, check.Unknown: api.Bad, check.Failed: api.Bad}

func printTable(p cli.Printer, checks []check.Check, short bool) {
	count := map[check.State]int{}
	category := ""
	for _, c := range checks {
		count[c.State]++
		if short && c.State == check.OK {
			continue
		}
		if c.Category != category {
			category = c.Category
			p.Line("%s", category)
		}
		p.Line("%s %s", Glyphs[c.State], c.Title)
		for _, f := range c.Findings {
			p.Line("    %s%s", strings.TrimPrefix(string(f.Code)+" ", " "), f.Message)
			if len(f.Nodes) > 0 {
				p.Line("      on   %s", cli.Some(f.Nodes, cli.MostNamed))
			}
			if f.Try != "" {
				p.Line("      try  %s", f.Try)
			}
		}
	}
	failed := count[check.Failed] + count[check.Unknown]
	p.Line("%s: %d fine, %d not fine, %s", api.Count(len(checks), "check"), count[check.OK], failed, api.Count(count[check.Warning], "warning"))
}

func writeJUnit(a *cli.App, checks []check.Check) error {
	var cases []cli.JUnitCase
	for _, c := range checks {
		one := cli.JUnitCase{Class: c.Category, Name: c.Title, Text: findingsText(c.Findings)}
		switch c.State {
		case check.Failed:
			one.Failure = c.Findings[0].Message
		case check.Unknown:
			one.Error = c.Findings[0].Message
		}
		cases = append(cases, one)
	}
	return cli.WriteJUnit(a.Stdout, "strait check", cases)
}

func findingsText(all []check.Finding) string {
	var lines []string
	for _, f := range all {
		line := strings.TrimPrefix(string(f.Code)+" ", " ") + f.Message
		if len(f.Nodes) > 0 {
			line += " (on " + strings.Join(f.Nodes, ", ") + ")"
		}
		if f.Try != "" {
			line += "; " + f.Try
		}
		lines = append(lines, cli.Clean(line))
	}
	return strings.Join(lines, "\n")
}

package fleet

import (
	"fmt"
	"strings"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/cli/connectivity"
	"strait.io/strait/daemon/api"
)

func glyphOf(fine bool) string {
	if fine {
		return api.OK
	}
	return api.Bad
}

// mostCalls is how many failed calls a cause names.
const mostCalls = 3

// printConnectivity prints the matrix, the causes of what failed, and a summary.
func printConnectivity(p cli.Printer, r connectivity.Report, took time.Duration) {
	header := []string{"FROM", "NETWORK"}
	for _, c := range r.Clusters {
		header = append(header, "TO "+c)
	}
	var rows [][]string
	for _, row := range r.Matrix() {
		line := []string{row.From, row.Kind}
		for _, c := range row.Cells {
			line = append(line, cellText(c))
		}
		rows = append(rows, line)
	}
	p.Table(header, rows)
	printPerformance(p, r.Pairs)
	for _, c := range r.Causes {
		p.Line("%s %s%s", api.Bad, codePrefix(c), c.Message)
		var calls []string
		for _, i := range c.Results {
			x := r.Results[i]
			calls = append(calls, fmt.Sprintf("%s from %s (%s) to %s", resultTitle(x), x.From, x.Kind, x.To))
		}
		p.Line("    breaks  %s: %s", api.Count(len(calls), "call"), cli.Some(calls, mostCalls))
		if c.Try != "" {
			p.Line("    try     %s", c.Try)
		}
	}
	for _, text := range unusual(r) {
		p.Line("%s %s", api.Warn, text)
	}
	for _, s := range r.Skipped {
		p.Line("%s cluster %s: not tested: %s: %s", api.Warn, s.Cluster, s.What, s.Why)
	}
	p.Line("%s: %d fine, %d failed, %d unknown, in %.0f s", api.Count(len(r.Results), "call"), r.Count(connectivity.OK),
		r.Count(connectivity.Failed), r.Count(connectivity.Unknown), took.Seconds())
}

// unusual lists what is strange about calls that are fine, and why others could not be made, each once.
func unusual(r connectivity.Report) (out []string) {
	seen := map[string]bool{}
	for _, x := range r.Results {
		text := ""
		switch {
		case x.State == connectivity.Unknown:
			text = fmt.Sprintf("%s (%s): could not be asked: %s", x.From, x.Kind, x.Error)
		case x.Note != "":
			text = fmt.Sprintf("%s (%s) to %s: %s", x.From, x.Kind, x.To, x.Note)
		}
		if text != "" && !seen[text] {
			seen[text] = true
			out = append(out, text)
		}
	}
	return out
}

func cellText(c connectivity.Cell) string {
	glyph := api.OK
	switch {
	case c.All == 0:
		return api.None
	case c.Fine+c.Unknown < c.All:
		glyph = api.Bad
	case c.Unknown > 0:
		glyph = api.Unknown
	}
	return fmt.Sprintf("%s %d/%d", glyph, c.Fine, c.All)
}

// resultTitle is what was called, with the pod if it must be that one.
func resultTitle(r connectivity.Result) string {
	if r.Server.Pod == "" {
		return r.Title()
	}
	return r.Title() + " of " + r.Server.Pod
}

func codePrefix(c connectivity.Cause) string {
	return strings.TrimPrefix(string(c.Code)+" ", " ")
}

func causeText(c connectivity.Cause) string {
	return codePrefix(c) + c.Message + "; " + c.Try
}

// printPerformance prints what was measured. The ratio says what strait's address costs beside the pods' own.
func printPerformance(p cli.Printer, pairs []connectivity.Pair) {
	if len(pairs) == 0 {
		return
	}
	var rows [][]string
	for _, x := range pairs {
		mtu := api.None
		if x.MTU > 0 {
			mtu = fmt.Sprint(x.MTU)
		}
		rows = append(rows, []string{x.From, x.To, fmt.Sprintf("%.0f/s", x.DirectRate), fmt.Sprintf("%.0f/s", x.ThroughRate), fmt.Sprintf("%.2f", x.Ratio),
			fmt.Sprintf("%.0f Mbit/s", x.Mbit), fmt.Sprintf("%.2f ms", x.RTT50), fmt.Sprintf("%.2f ms", x.RTT99), fmt.Sprintf("%.1f %%", 100*x.Lost), mtu})
	}
	p.Table([]string{"FROM", "TO", "CONNECTS TO PODS", "TO CLUSTERSETIP", "RATIO", "ONE STREAM", "RTT", "RTT P99", "LOST", "MTU"}, rows)
	for _, x := range pairs {
		for _, e := range x.Errors {
			p.Line("%s measuring from %s to %s: %s", api.Warn, x.From, x.To, e)
		}
	}
}

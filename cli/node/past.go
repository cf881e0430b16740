package node

import (
	"fmt"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
)

// pastMoment reads the flag --at; zero if it is not set.
func pastMoment(at string, now time.Time) (time.Time, error) {
	if at == "" {
		return time.Time{}, nil
	}
	return cli.When(at, now)
}

// stamp writes a moment so that strait explain --at finds the same turn everywhere.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// pastHeader prints of which moment an answer is, and what is not known of it.
func pastHeader(a *cli.App, p cli.Printer, from api.Viewpoint) {
	for _, line := range pastLines(from, a.Now().Location()) {
		p.Line("%s", line)
	}
}

// pastLines describes of which moment an answer is, and what is not known of it.
func pastLines(from api.Viewpoint, zone *time.Location) []string {
	past := from.Past
	when := func(t time.Time) string { return t.In(zone).Format(time.DateTime + " MST") }
	until := "and nothing changed since"
	if !past.Next.IsZero() {
		until = "until " + when(past.Next)
	}
	lines := []string{fmt.Sprintf("clusterset of %s · seen from %s/%s · as noted at %s, by its clock, %s", api.Count(from.Clusters, "cluster"), from.Cluster, from.Node, when(past.At), until)}
	if past.Started {
		lines = append(lines, api.Warn+" straitd started then; when it had stopped is not known")
	}
	if past.Error != "" {
		lines = append(lines, api.Warn+" the kernel did not hold all of the plan: "+past.Error)
	}
	return lines
}

package node

import (
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

// pastHeader says of which moment an answer is, and what is not known of it.
func pastHeader(a *cli.App, p cli.Printer, from api.Viewpoint) {
	past, zone := from.Past, a.Now().Location()
	when := func(t time.Time) string { return t.In(zone).Format(time.DateTime + " MST") }
	until := "and nothing changed since"
	if !past.Next.IsZero() {
		until = "until " + when(past.Next)
	}
	p.Line("clusterset of %s · seen from %s/%s · as noted at %s, by its clock, %s", api.Count(from.Clusters, "cluster"), from.Cluster, from.Node, when(past.At), until)
	if past.Started {
		p.Line("%s straitd started then; when it had stopped is not known", api.Warn)
	}
	if past.Error != "" {
		p.Line("%s the kernel did not hold all of the plan: %s", api.Warn, past.Error)
	}
}

package node

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
)

// flowsView is who calls one service now, as all nodes see it that the page asks.
type flowsView struct {
	// Seen is which nodes answered.
	Seen string `json:"seen"`
	// Total is what the service's connections sum up to.
	Total string `json:"total"`
	// Clusters are those whose backends get connections, and Table the clients with their backends.
	Clusters sheet `json:"clusters"`
	Table    sheet `json:"table"`
	// Notes are what is missing, and why.
	Notes []string `json:"notes"`
	Line  string   `json:"line"`
}

func (p *page) flows(ctx context.Context, q url.Values) (any, error) {
	name, _, err := cli.ParseService(q.Get("name"))
	if err != nil {
		return nil, err
	}
	answers, err := every(ctx, p, askFlows(name))
	if err != nil {
		return nil, err
	}
	list := mergedFlows(answers)
	// A bundle answers with the flows of all services.
	list.Items = slices.DeleteFunc(list.Items, func(f api.Flow) bool { return f.Service != name })
	v := flowsView{Seen: titleOf(list.Nodes), Table: sheetOf(p, table.Flows, list.Items, table.Form{}, false), Notes: cleanLines(missingLines(list.Nodes)),
		Clusters: sheet{Columns: []string{}, Rows: [][]string{}}, Line: p.lineOfAll("flows", name)}
	before, after, err := p.counts.ask(ctx, p)
	if err != nil {
		message, _ := cli.Explained(err)
		v.Notes = append(v.Notes, cli.Clean(api.Warn+" what the nodes counted is not known: "+message))
		return v, nil
	}
	before, after = onlyOf(before, name), onlyOf(after, name)
	v.Clusters = sheetOf(p, table.Top("clusters"), api.NewTop("clusters", before, after).Items, table.Form{}, false)
	v.Total = totalOf(sheetOf(p, table.Top("services"), api.NewTop("services", before, after).Items, table.Form{}, false))
	return v, nil
}

// totalOf is the one row of strait top as a line: "3 open · 1.2 new/s · 0 refused/s".
func totalOf(s sheet) string {
	if len(s.Rows) == 0 {
		return ""
	}
	var parts []string
	for i, name := range s.Columns {
		if name == "OPEN" || strings.HasSuffix(name, "/S") {
			parts = append(parts, s.Rows[0][i]+" "+strings.ToLower(name))
		}
	}
	return strings.Join(parts, " · ")
}

// onlyOf leaves one service in what nodes counted.
func onlyOf(lists []*api.TrafficList, service string) (out []*api.TrafficList) {
	for _, l := range lists {
		one := *l
		one.Items = slices.DeleteFunc(slices.Clone(l.Items), func(s api.ServiceTraffic) bool { return s.Service != service })
		out = append(out, &one)
	}
	return out
}

// counts keep the last two answers about what nodes counted, as rates follow from two. All views share them.
type counts struct {
	mu            sync.Mutex
	at            time.Time // of after
	before, after []*api.TrafficList
}

// A rate is of at least countFor, so that a single connection does not look like many, and an answer older
// than countWithin is not compared with.
const (
	countFor    = time.Second
	countWithin = 20 * time.Second
)

// ask returns two answers at least countFor apart. The one before is missing at first.
func (c *counts) ask(ctx context.Context, p *page) (before, after []*api.TrafficList, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := p.app.Now()
	if age := now.Sub(c.at); c.after != nil && age < countFor {
		return c.before, c.after, nil // always so for a bundle, whose time stands still
	}
	all, err := every(ctx, p, askTraffic)
	if err != nil {
		return nil, nil, err
	}
	c.before = nil
	if now.Sub(c.at) <= countWithin {
		c.before = c.after
	}
	c.at, c.after = now, []*api.TrafficList{}
	for _, x := range all {
		if x.answer != nil {
			c.after = append(c.after, x.answer)
		}
	}
	return c.before, c.after, nil
}

// mostNotes is how many notes the page shows.
const mostNotes = 12

// cleanLines makes lines safe to show. Of many, as from many nodes, the first are enough.
func cleanLines(lines []string) []string {
	out := []string{}
	for i, l := range lines {
		if i == mostNotes {
			return append(out, fmt.Sprintf("… and %d more", len(lines)-i))
		}
		out = append(out, strings.TrimSpace(cli.Clean(l)))
	}
	return out
}

// lineOfAll is the command line that asks all nodes which the page asks, to copy.
func (p *page) lineOfAll(args ...string) string {
	if len(p.places) > 1 {
		return p.lineAt(p.places, args...)
	}
	if p.app.From.Node == "" {
		args = append(args, "--node", api.EveryNode)
	}
	return p.line(p.places[0], args...)
}

package node

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
)

// timelineView is what changed and why, the newest first, as all nodes noted it that the page asks.
type timelineView struct {
	// Seen is which nodes answered, and Zone that of the times.
	Seen  string `json:"seen"`
	Zone  string `json:"zone"`
	Table sheet  `json:"table"`
	// Events are the rows, for links.
	Events []eventView `json:"events"`
	// Notes are what is missing, and why.
	Notes []string `json:"notes"`
	Line  string   `json:"line"`
}

// eventView is where a row leads: to the services that it changed, as they are now and as they were then.
type eventView struct {
	Services []string `json:"services"`
	// More counts the services that are not listed.
	More int `json:"more,omitempty"`
	// At is when the change was complete, for strait explain --at; empty if no daemon can be asked of then.
	At string `json:"at,omitempty"`
	// Context leads to a node that noted it.
	Context string `json:"context,omitempty"`
}

// Bounds of the view: events, and services of each.
const (
	mostEvents = 1000
	mostLinked = 6
)

// sinceAll asks for all that the nodes have noted.
const sinceAll = "all"

func (p *page) timeline(ctx context.Context, q url.Values) (any, error) {
	asked, err := p.timelineQuery(q)
	if err != nil {
		return nil, err
	}
	answers, err := every(ctx, p, askHistory(asked))
	if err != nil {
		return nil, err
	}
	var t timeline
	t.add(answers, asked)
	t.group()
	now := p.app.Now()
	notes := t.bounds(asked, now.Location())
	for _, m := range t.Missing {
		notes = append(notes, api.Bad+" "+m)
	}
	slices.Reverse(t.Events)
	if more := len(t.Events) - mostEvents; more > 0 {
		t.Events = t.Events[:mostEvents]
		notes = append(notes, fmt.Sprintf("%s %d earlier ones are left out: choose a shorter time, or what they are about", api.Warn, more))
	}
	v := timelineView{Zone: now.Format("MST"), Table: sheetOf(p, table.Timeline, t.Events, table.Form{Wide: true}, true), Events: []eventView{},
		Notes: cleanLines(notes), Line: p.lineOfAll(t.args(q.Get("name"), q.Get("since"))...)}
	nodes, contexts := []api.AskedNode{}, map[string]string{}
	for _, x := range answers {
		nodes = append(nodes, x.AskedNode)
		contexts[x.Cluster+"/"+x.Node] = x.Context
	}
	v.Seen = "noted by " + nodesOf(nodes)
	for i, e := range t.Events {
		at := p.eventOf(e, contexts[e.Nodes[0]])
		v.Events = append(v.Events, at)
		v.Table.Names[i] += " " + strings.Join(at.Services, " ") // words to filter by
	}
	return v, nil
}

// timelineQuery reads what the page asks for: by default, the last hour.
func (p *page) timelineQuery(q url.Values) (api.HistoryQuery, error) {
	since := q.Get("since")
	switch since {
	case sinceAll:
		return api.HistoryQuery{Name: q.Get("name")}, nil
	case "":
		since = "1h"
	}
	var args []string
	if name := q.Get("name"); name != "" {
		args = []string{name}
	}
	return historyQuery(since, "", args, p.app.Now())
}

// args are the arguments of the command that shows the same.
func (t *timeline) args(name, since string) []string {
	args := []string{"timeline"}
	if name != "" {
		args = append(args, name)
	}
	if since == sinceAll {
		since = ""
		var begins time.Time
		for _, h := range t.Histories {
			if !h.Begins.IsZero() && (begins.IsZero() || h.Begins.Before(begins)) {
				begins = h.Begins
			}
		}
		if !begins.IsZero() {
			since = stamp(begins)
		}
	}
	if since != "" {
		args = append(args, "--since", since)
	}
	return append(args, "-o", "wide")
}

// eventOf is where an event leads.
func (p *page) eventOf(e *api.Event, context string) eventView {
	v := eventView{Services: []string{}, Context: context, More: e.MoreEffects + max(0, len(e.Effects)-mostLinked)}
	for _, x := range e.Effects[:min(len(e.Effects), mostLinked)] {
		v.Services = append(v.Services, cli.Clean(x.Service))
	}
	if p.app.From.File == "" {
		v.At = stamp(e.To)
	}
	return v
}

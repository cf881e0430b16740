package node

import (
	"context"
	"net/url"
	"slices"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

// servicesView is the list of all services.
type servicesView struct {
	Whose whose `json:"whose"`
	Table sheet `json:"table"`
	// Shares are where new connections to each row's first frontend go, by tier.
	Shares [][]tierShare `json:"shares"`
	Line   string        `json:"line"`
}

// tierShare is a tier's part of new connections, 0 to 1.
type tierShare struct {
	Tier  string  `json:"tier"`
	Share float64 `json:"share"`
}

func sharesOf(f api.Frontend) []tierShare {
	out := []tierShare{}
	for _, t := range f.Tiers() {
		if t.Share > 0 {
			out = append(out, tierShare{t.Name, t.Share})
		}
	}
	return out
}

func (p *page) services(ctx context.Context, q url.Values) (any, error) {
	at, err := p.in(q)
	if err != nil {
		return nil, err
	}
	list, err := ask(ctx, at, (*client.Client).Services)
	if err != nil {
		return nil, err
	}
	v := servicesView{whoseOf(list.SeenFrom), sheetOf(p, table.Services, list.Items, table.Form{}, false), [][]tierShare{}, p.line(at, "services")}
	for _, s := range list.Items {
		shares := []tierShare{}
		if len(s.Frontends) > 0 {
			shares = sharesOf(s.Frontends[0])
		}
		v.Shares = append(v.Shares, shares)
	}
	return v, nil
}

// serviceView is one service with every endpoint and why it is in use or not.
type serviceView struct {
	Whose     whose          `json:"whose"`
	Name      string         `json:"name"`
	About     string         `json:"about"`
	Policies  []string       `json:"policies,omitempty"`
	Frontends []frontendView `json:"frontends"`
	// None is why there is no frontend.
	None string `json:"none,omitempty"`
	// Clusters and Nodes are those that its endpoints are in, for changes to try.
	Clusters []string `json:"clusters"`
	Nodes    []string `json:"nodes"`
	// Past says of which moment the view is, and what is not known of it; missing if it is of now.
	Past []string `json:"past,omitempty"`
	// Before and Next are moments of the turns before and after that, as far as there are some.
	Before string `json:"before,omitempty"`
	Next   string `json:"next,omitempty"`
	Line   string `json:"line"`
}

type frontendView struct {
	Addr   string      `json:"addr"`
	Line   string      `json:"line"`
	Shares []tierShare `json:"shares"`
	Table  sheet       `json:"table"`
}

func (p *page) service(ctx context.Context, q url.Values) (any, error) {
	at, err := p.in(q)
	if err != nil {
		return nil, err
	}
	name, from := q.Get("name"), q.Get("from")
	then, err := pastMoment(q.Get("at"), p.app.Now())
	if err != nil {
		return nil, err
	}
	answer, err := ask(ctx, at, func(c *client.Client, ctx context.Context) (*api.Explanation, error) {
		if !then.IsZero() {
			return c.ExplainAt(ctx, name, from, then)
		}
		return c.Explain(ctx, name, from)
	})
	if err != nil {
		return nil, err
	}
	s := answer.Service
	v := serviceView{Whose: whoseOf(answer.SeenFrom), Name: s.Name, About: cli.Clean(exportLine(s)), Policies: s.Policies, Frontends: []frontendView{}}
	if past := answer.SeenFrom.Past; past != nil {
		v.Past = cleanLines(pastLines(answer.SeenFrom, p.app.Now().Location()))
		v.Before = stamp(past.At.Add(-time.Nanosecond))
		if !past.Next.IsZero() {
			v.Next = stamp(past.Next)
		}
	}
	if len(s.Frontends) == 0 {
		v.None = table.Why(s)
	}
	clusters, nodes := map[string]bool{}, map[string]bool{}
	for _, f := range s.Frontends {
		v.Frontends = append(v.Frontends, frontendView{f.Addr.String(), cli.Clean(frontendLine(f, answer.SeenFrom)), sharesOf(f),
			sheetOf(p, table.Explained, table.Candidates(f), table.Form{}, false)})
		for _, e := range f.Endpoints {
			clusters[e.Cluster] = true
			if e.Node != "" {
				nodes[e.Where()] = true
			}
		}
	}
	v.Clusters, v.Nodes = sorted(clusters), sorted(nodes)
	v.Line = p.line(at, explainArgs(name, from, "", then)...)
	return v, nil
}

func sorted(names map[string]bool) []string {
	out := []string{}
	for n := range names {
		out = append(out, cli.Clean(n))
	}
	slices.Sort(out)
	return out
}

// explainArgs are the arguments of the command that shows the same.
func explainArgs(service, from, change string, then time.Time) []string {
	args := []string{"explain"}
	if service != "" {
		args = append(args, service)
	}
	if from != "" {
		args = append(args, "--from", from)
	}
	if change != "" {
		args = append(args, "--what-if", change)
	}
	if !then.IsZero() {
		args = append(args, "--at", stamp(then))
	}
	return args
}

// whatIfView is where connections would go after a change: now and then.
type whatIfView struct {
	Whose   whose       `json:"whose"`
	Summary []string    `json:"summary"`
	Moved   sheet       `json:"moved"`
	Each    []movedView `json:"each"`
	Line    string      `json:"line"`
}

type movedView struct {
	Addr  string `json:"addr"`
	Table sheet  `json:"table"`
}

func (p *page) whatIf(ctx context.Context, q url.Values) (any, error) {
	at, err := p.in(q)
	if err != nil {
		return nil, err
	}
	service, from, change := q.Get("service"), q.Get("from"), q.Get("change")
	w, err := ask(ctx, at, func(c *client.Client, ctx context.Context) (*api.WhatIf, error) {
		return c.WhatIf(ctx, change, service, from)
	})
	if err != nil {
		return nil, err
	}
	v := whatIfView{Whose: whoseOf(w.SeenFrom), Summary: []string{}, Each: []movedView{},
		Moved: sheetOf(p, table.Moved, w.Moved[:min(len(w.Moved), maxShown)], table.Form{}, false), Line: p.line(at, explainArgs(service, from, change, time.Time{})...)}
	for _, line := range cli.WhatIfLines(w) {
		v.Summary = append(v.Summary, cli.Clean(line))
	}
	if service != "" {
		for _, m := range w.Moved {
			v.Each = append(v.Each, movedView{m.Addr.String(), sheetOf(p, table.MovedEndpoints, m.Endpoints, table.Form{}, false)})
		}
	}
	return v, nil
}

// maxShown is how many moved frontends the page shows.
const maxShown = 500

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/url"
	"slices"

	"strait.io/strait/cli"
	"strait.io/strait/cli/check"
	"strait.io/strait/cli/checklist"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/problem"
)

// clustersetView is the first view of the page: what needs attention, and how clusters reach each other.
type clustersetView struct {
	// Seen is which nodes answered.
	Seen string `json:"seen"`
	// Attention are what is not fine, the worst first, and Fine is how many checks are.
	Attention []attention `json:"attention"`
	Checks    int         `json:"checks"`
	Fine      int         `json:"fine"`
	Clusters  sheet       `json:"clusters"`
	Nodes     sheet       `json:"nodes"`
	Matrix    matrix      `json:"matrix"`
	Line      string      `json:"line"`
}

// attention is one thing that is not fine.
type attention struct {
	Glyph   string `json:"glyph"`
	Code    string `json:"code,omitempty"`
	Check   string `json:"check"`
	Message string `json:"message"`
	On      string `json:"on,omitempty"`
	Try     string `json:"try,omitempty"`
}

func (p *page) clusterset(ctx context.Context, _ url.Values) (any, error) {
	answers, err := every(ctx, p, askStatus)
	if err != nil {
		return nil, err
	}
	all := statuses(answers)
	var answered []seen
	var nodes []check.Node
	for _, s := range all {
		nodes = append(nodes, check.Node{Name: s.name(), Cluster: s.Cluster, Status: s.Status, Error: s.why(), Try: s.Try})
		if s.Status != nil {
			answered = append(answered, s)
		}
	}
	v := clustersetView{Seen: seenFrom(answered, len(all)), Attention: []attention{}, Matrix: matrixOf(answered), Line: p.line(p.places[0], "check")}
	for _, c := range check.Run(nodes, p.app.ThisVersion().Version) {
		v.Checks++
		if c.State == check.OK {
			v.Fine++
		}
		v.Attention = append(v.Attention, findings(c)...)
	}
	slices.SortStableFunc(v.Attention, attention.compare)
	header, rows := clusterRows(p.app, answered)
	v.Clusters = cleaned(header, rows)
	v.Nodes = cleaned([]string{"NODE", "STATE", "DATA PATH", "MESH", "LEADER", "VERSION"}, nodeRows(all))
	return v, nil
}

// compare orders by how bad it is, and puts causes before their effects. What no daemon reports is most often
// the effect of what one does.
func (a attention) compare(b attention) int {
	depth := func(a attention) int {
		if a.Code == "" {
			return math.MaxInt
		}
		return problem.Code(a.Code).Depth()
	}
	return cmp.Or(cmp.Compare(glyphRank(a.Glyph), glyphRank(b.Glyph)), cmp.Compare(depth(a), depth(b)))
}

func glyphRank(glyph string) int { return slices.Index([]string{api.Bad, api.Warn}, glyph) }

// cleaned makes a sheet of what is no table of package table.
func cleaned(header []string, rows [][]string) sheet {
	s := sheet{Columns: header, Rows: rows}
	if rows == nil {
		s.Rows = [][]string{}
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = cli.Clean(cmp.Or(cell, api.None))
		}
	}
	return s
}

// findings are those of a check, as the page shows them.
func findings(c check.Check) (out []attention) {
	for _, f := range c.Findings {
		out = append(out, attention{Glyph: checklist.Glyphs[f.Severity()], Code: string(f.Code), Check: c.Title, Message: cli.Clean(f.Message),
			On: cli.Clean(cli.Some(f.Nodes, cli.MostNamed)), Try: cli.Clean(f.Try)})
	}
	return out
}

// everyNodes asks each node of a cluster how it sees the others, for the tunnels from each.
func (at *place) everyNodes(ctx context.Context) ([]*api.NodeList, error) {
	list, err := ask(ctx, at, (*client.Client).EveryNodes)
	if err != nil {
		return nil, err
	}
	var out []*api.NodeList
	for _, item := range list.Items {
		var answer api.NodeList
		if item.Error == nil && json.Unmarshal(item.Answer, &answer) == nil && answer.Kind == api.KindNodes {
			out = append(out, &answer)
		}
	}
	return out, nil
}

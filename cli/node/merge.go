package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

func printEvery(p cli.Printer, all []seen) {
	var answered []seen
	for _, s := range all {
		if s.Status != nil {
			answered = append(answered, s)
		}
	}
	p.Line("seen from  %s", seenFrom(answered, len(all)))
	p.Table([]string{"CLUSTER", "STATE", "NODES", "DEAD", "EXPORTS", "ENDPOINTS", "SEEN FROM"}, clusterRows(answered))
	p.Line("")
	p.Table([]string{"NODE", "STATE", "DATA PATH", "MESH", "LEADER", "VERSION"}, nodeRows(all))
	for _, s := range all {
		if s.Status == nil {
			p.Line("%s %s: %s", api.Bad, s.name(), s.why())
			if s.Try != "" {
				p.Line("  try  %s", s.Try)
			}
		}
	}
	if list := mergedProblems(answered); len(list) > 0 || len(answered) == len(all) {
		problems(p, list)
	}
}

func seenFrom(answered []seen, asked int) string {
	clusters := map[string]bool{}
	oldest := 0.0
	for _, s := range answered {
		clusters[s.Cluster] = true
		oldest = max(oldest, s.Age)
	}
	text := fmt.Sprintf("%s of %s", api.Count(len(answered), "node"), api.Count(len(clusters), "cluster"))
	if asked > len(answered) {
		text = fmt.Sprintf("%d of %s, of %s", len(answered), api.Count(asked, "node"), api.Count(len(clusters), "cluster"))
	}
	if oldest >= 1 {
		text += fmt.Sprintf(", up to %.0f s ago", oldest)
	}
	return text
}

// clusterRows are the clusters as the nodes see them: a row where all nodes see the same, and
// otherwise a row for each way in which they differ, with the nodes.
func clusterRows(answered []seen) (rows [][]string) {
	return merged(answered, func(s seen) (rows [][]string) {
		for _, c := range s.Status.Clusters {
			state := api.Warn + " " + string(c.State)
			if c.State == api.Here || c.State == api.Joined {
				state = api.OK + " joined"
			}
			if c.Drained > 0 {
				state += ", drained " + api.Percent(c.Drained)
			}
			dead := ""
			if c.Dead > 0 {
				dead = fmt.Sprintf("%s %d", api.Bad, c.Dead)
			}
			rows = append(rows, []string{c.Name, state, fmt.Sprintf("%d/%d", c.Alive, c.Nodes), dead, fmt.Sprint(c.Exports), fmt.Sprint(c.Endpoints)})
		}
		return rows
	})
}

// merged returns the rows of all nodes, each once, and adds which nodes have it. Rows are sorted by
// their first cell, and of one first cell the row of most nodes comes first.
func merged(answered []seen, of func(seen) [][]string) (rows [][]string) {
	type row struct {
		cells []string
		nodes []string
	}
	found := map[string]*row{}
	for _, s := range answered {
		for _, cells := range of(s) {
			key := strings.Join(cells, "\x00")
			if found[key] == nil {
				found[key] = &row{cells: cells}
			}
			found[key].nodes = append(found[key].nodes, s.name())
		}
	}
	var all []*row
	for _, r := range found {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.cells[0], b.cells[0]), cmp.Compare(len(b.nodes), len(a.nodes)), slices.Compare(a.cells, b.cells))
	})
	for _, r := range all {
		rows = append(rows, append(r.cells, nodesText(r.nodes, len(answered))))
	}
	return rows
}

// mostNamed is how many nodes a row names.
const mostNamed = 3

// nodesText names some nodes of all.
func nodesText(nodes []string, all int) string {
	if len(nodes) == all {
		return "all nodes"
	}
	return cli.Some(nodes, mostNamed)
}

// nodeRows are the nodes. Those of a cluster that are in the same state share a row.
func nodeRows(all []seen) (rows [][]string) {
	count, at := map[string]int{}, map[string]int{}
	for _, s := range all {
		cells := []string{s.name(), api.Bad + " no answer", "", "", "", ""}
		if s.Status != nil {
			cells = nodeCells(s)
		}
		key := s.Cluster + "\x00" + strings.Join(cells[1:], "\x00")
		if s.Cluster == "" || cells[4] != "" {
			key += s.name() // it has a row of its own
		}
		count[key]++
		if i, shared := at[key]; shared {
			rows[i][0] = fmt.Sprintf("%s and %d more", firstName(rows[i][0]), count[key]-1)
			continue
		}
		at[key] = len(rows)
		rows = append(rows, cells)
	}
	return rows
}

func firstName(cell string) string {
	name, _, _ := strings.Cut(cell, " and ")
	return name
}

func nodeCells(s seen) []string {
	state := api.OK + " ready"
	switch {
	case !s.Status.Ready:
		state = api.Bad + " waiting for " + waitingFor(*s.Status)
	case len(s.Status.Waiting) > 0:
		state = api.Warn + " waiting for " + waitingFor(*s.Status)
	}
	attached := api.OK + " attached"
	if !s.Status.Datapath.Attached {
		attached = api.Bad + " not attached"
	}
	leader := ""
	if s.Status.Leader {
		leader = "leader"
	}
	return []string{s.name(), state, attached, s.Status.Datapath.Mesh, leader, s.Status.Version}
}

// mergedProblems returns each problem once, with the nodes that have it if not all do.
func mergedProblems(answered []seen) (list []problem.Problem) {
	type key struct {
		code, finding, try string
		warning            bool
	}
	nodes := map[key][]string{}
	first := map[key]problem.Problem{}
	var order []key
	for _, s := range answered {
		for _, o := range s.Status.Problems {
			k := key{string(o.Code), o.Finding(), o.Try, o.Warning}
			if nodes[k] == nil {
				order, first[k] = append(order, k), o
			}
			nodes[k] = append(nodes[k], s.name())
		}
	}
	slices.SortStableFunc(order, func(a, b key) int {
		return cmp.Compare(len(nodes[b]), len(nodes[a]))
	})
	for _, k := range order {
		o := first[k]
		if n := len(nodes[k]); n < len(answered) {
			o.Message += " (on " + nodesText(nodes[k], len(answered)) + ")"
		}
		list = append(list, o)
	}
	return list
}

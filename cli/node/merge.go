package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/internal/problem"
)

func printEvery(a *cli.App, all []seen) {
	p := a.Printer()
	var answered []seen
	for _, s := range all {
		if s.Status != nil {
			answered = append(answered, s)
		}
	}
	p.Line("seen from  %s", seenFrom(answered, len(all)))
	p.Table(clusterRows(a, answered))
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

// clusterRows are the clusters as the nodes see them, in the columns of a node's own status: a row
// where all nodes see the same, and otherwise a row for each way in which they differ, with the nodes.
func clusterRows(a *cli.App, answered []seen) (header []string, rows [][]string) {
	lists := make([][]api.Cluster, len(answered))
	for i, s := range answered {
		for _, c := range s.Status.Clusters {
			if c.State == api.Here {
				c.State = api.Joined // each node is at home in its own cluster
			}
			c.Heard, c.Tunnels = time.Time{}, nil // each node has its own
			lists[i] = append(lists[i], c)
		}
	}
	merged := table.Clusters.Merge(lists, table.Form{})
	slices.SortStableFunc(merged, func(a, b table.Merged[api.Cluster]) int { return cmp.Compare(a.Item.Name, b.Item.Name) })
	items := make([]api.Cluster, len(merged))
	for i, m := range merged {
		items[i] = m.Item
	}
	header, rows = cli.WithoutEmpty(table.Clusters.Header(table.Form{}), table.Clusters.Rows(items, a.Now(), table.Form{}))
	for i, m := range merged {
		var nodes []string
		for _, n := range m.Lists {
			nodes = append(nodes, answered[n].name())
		}
		rows[i] = append(rows[i], nodesText(nodes, len(answered)))
	}
	return append(header, "SEEN FROM"), rows
}

// nodesText names some nodes of all.
func nodesText(nodes []string, all int) string {
	if len(nodes) == all {
		return "all nodes"
	}
	return cli.Some(nodes, cli.MostNamed)
}

// nodeRows are the nodes. Those of a cluster that are in the same state share a row, but for leaders.
func nodeRows(all []seen) (rows [][]string) {
	names, at := [][]string{}, map[string]int{}
	for _, s := range all {
		cells := []string{"", api.Bad + " no answer", "", "", "", ""}
		if s.Status != nil {
			cells = nodeCells(s)
		}
		key := s.Cluster + "\x00" + strings.Join(cells, "\x00")
		i, shared := at[key]
		if !shared || s.Cluster == "" || cells[4] != "" {
			i, at[key] = len(rows), len(rows)
			rows, names = append(rows, cells), append(names, nil)
		}
		names[i] = append(names[i], s.name())
	}
	for i := range rows {
		rows[i][0] = cli.Some(names[i], 1)
	}
	return rows
}

// nodeCells are the cells of a node that answered, without its name.
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
	return []string{"", state, attached, s.Status.Datapath.Mesh, leader, s.Status.Version}
}

// mergedProblems returns each problem once, with the nodes that have it if not all do: causes before their
// effects, and those of many nodes first.
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
		return cmp.Or(cmp.Compare(first[a].Code.Depth(), first[b].Code.Depth()), cmp.Compare(len(nodes[b]), len(nodes[a])))
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

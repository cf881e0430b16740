package node

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

// nodesView is the list of all nodes, and the tunnels from each node of the cluster that was asked.
type nodesView struct {
	Whose whose `json:"whose"`
	Table sheet `json:"table"`
	// Notes are what else there is to say of nodes.
	Notes []string `json:"notes"`
	// From has a row for each node that answered, and a cell for each node of another cluster; it is missing
	// for large clustersets.
	From *sheet `json:"from,omitempty"`
	Line string `json:"line"`
}

// mostTunnels is up to how many nodes the tunnels from each to each are shown.
const mostTunnels = 24

func (p *page) nodes(ctx context.Context, q url.Values) (any, error) {
	at, err := p.in(q)
	if err != nil {
		return nil, err
	}
	list, err := ask(ctx, at, (*client.Client).Nodes)
	if err != nil {
		return nil, err
	}
	v := nodesView{whoseOf(list.SeenFrom), sheetOf(p, table.Nodes, list.Items, table.Form{}, true), []string{}, nil, p.line(at, "nodes")}
	for _, n := range list.Items {
		if len(n.Witnesses) > 0 {
			v.Notes = append(v.Notes, cli.Clean(fmt.Sprintf("%s %s/%s is silent according to %s", api.Warn, n.Cluster, n.Name, strings.Join(n.Witnesses, ", "))))
		}
	}
	if len(list.Items) <= mostTunnels {
		views := []*api.NodeList{list}
		if at.closed.From.Node == "" {
			// By commands in a pod, only its node answers.
			if every, err := at.everyNodes(ctx); err == nil && len(every) > 0 {
				views = every
			}
		}
		v.From = tunnelSheet(views)
	}
	return v, nil
}

// tunnelSheet shows what the tunnels from each node carry; nil if no node has one.
func tunnelSheet(views []*api.NodeList) *sheet {
	s := &sheet{Columns: []string{"FROM"}, Rows: [][]string{}}
	at := map[string]int{}
	for _, v := range views {
		for _, n := range v.Items {
			name := n.Cluster + "/" + n.Name
			if _, known := at[name]; !known && n.Tunnel != nil {
				at[name] = len(s.Columns)
				s.Columns = append(s.Columns, cli.Clean(name))
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	for _, v := range views {
		row := make([]string, len(s.Columns))
		for i := range row {
			row[i] = api.None
		}
		row[0] = cli.Clean(v.SeenFrom.Cluster + "/" + v.SeenFrom.Node)
		for _, n := range v.Items {
			if n.Tunnel != nil {
				row[at[n.Cluster+"/"+n.Name]] = table.Carries(*n.Tunnel)
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

const graphLong = `Draw the mesh between the clusters as this node sees it: each cluster with its nodes, a link for
each WireGuard tunnel between two nodes, and which nodes are not reachable.

The mesh of this node's daemon decides which nodes have tunnels: every node of one cluster to every
node of the others. A dashed line is a tunnel to a node that is not reachable, or one of this node's
own tunnels that does not carry packets; only the two ends of a tunnel know that. While nothing
changes, the output stays the same.`

func GraphCommand(a *cli.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:               "graph",
		Short:             "Draw the mesh between the clusters",
		Long:              graphLong,
		Example:           "  strait graph\n  strait graph -o dot > mesh.dot\n  strait graph -o mermaid",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(graphFormats, format) {
				return cli.UsageError("unknown --output %q; use %s", format, strings.Join(graphFormats, ", "))
			}
			list, err := cli.Ask(cmd.Context(), a, (*client.Client).Nodes)
			if err != nil {
				return err
			}
			between, err := askTunnels(cmd.Context(), a, "")
			if err != nil {
				return err
			}
			m := meshOf(list, between)
			switch format {
			case "dot":
				_, err = fmt.Fprint(a.Stdout, m.dot())
			case "mermaid":
				_, err = fmt.Fprint(a.Stdout, m.mermaid())
			case "json", "yaml":
				a.Output = format
				_, err = a.Data(m.data())
			default:
				m.text(a.Printer())
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "output `format`: text, dot, mermaid, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(graphFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

var graphFormats = []string{"text", "dot", "mermaid", "json", "yaml"}

// mesh is the picture as data. Nothing in it depends on the time at which it is drawn. It renders
// the daemon's own mesh, as the answer gives it: api.Peer is its part about a node.
type mesh struct {
	from     string // the node that sees it, "cluster/node"
	clusters []meshCluster
	links    []link
}

type meshCluster struct {
	name  string
	nodes []api.Node
}

// link is the tunnel between two nodes, the lower name first.
type link struct {
	a, b *api.Node
	why  string // why it does not carry traffic; empty if nothing is known against it
}

// meshOf makes a picture of the nodes, which are sorted by cluster and name, and of the tunnels between them.
func meshOf(l *api.NodeList, between tunnels) mesh {
	m := mesh{from: l.SeenFrom.Cluster + "/" + l.SeenFrom.Node}
	for i := range l.Items {
		n := l.Items[i]
		if last := len(m.clusters) - 1; last < 0 || m.clusters[last].name != n.Cluster {
			m.clusters = append(m.clusters, meshCluster{name: n.Cluster})
		}
		c := &m.clusters[len(m.clusters)-1]
		c.nodes = append(c.nodes, n)
	}
	for i := range l.Items {
		for j := i + 1; j < len(l.Items); j++ {
			if x, y := &l.Items[i], &l.Items[j]; between.join(x, y) {
				m.links = append(m.links, link{x, y, whyDown(x, y)})
			}
		}
	}
	return m
}

func fullName(n *api.Node) string { return n.Cluster + "/" + n.Name }

// noTunnel returns why no tunnel leads to a node.
func noTunnel(n *api.Node) string {
	if n.Peer == nil {
		return "this straitd does not say how to reach it; upgrade it"
	}
	return n.Peer.NoTunnel
}

// unreachable returns why a node is not reachable; empty if it is.
func unreachable(n *api.Node) string {
	switch {
	case n.Dead:
		return "dead"
	case n.Contact == "quiet":
		return "its daemon is not heard, its machine answers"
	case n.IsHeard():
		return ""
	}
	return "not heard (" + n.Contact + ")"
}

// whyDown returns why a tunnel is known to carry nothing. A node whose machine answers can be reached by it.
func whyDown(a, b *api.Node) string {
	for _, n := range []*api.Node{a, b} {
		if why := unreachable(n); why != "" && n.Contact != "quiet" {
			return n.Name + " is " + why
		}
	}
	for _, n := range []*api.Node{a, b} {
		other := a
		if n == a {
			other = b
		}
		switch {
		case other.Contact != "self":
		case n.Tunnel == nil || n.Tunnel.Handshake.IsZero():
			return "no handshake"
		case n.Tunnel.Down() != "":
			return n.Tunnel.Down()
		}
	}
	return ""
}

// notes are the lines of a node below its name.
func notes(n *api.Node) (out []string) {
	if n.Peer != nil {
		for _, p := range n.Peer.AllowedIPs {
			out = append(out, p.String())
		}
	}
	if why := unreachable(n); why != "" {
		out = append(out, why)
	}
	if noTunnel(n) != "" {
		out = append(out, "no tunnel")
	}
	return out
}

func (m mesh) dot() string {
	var b strings.Builder
	escape := func(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(cli.Clean(s)) }
	quote := func(s string) string { return `"` + escape(s) + `"` }
	fmt.Fprintf(&b, "graph clusterset {\n  label=%s;\n  node [shape=box];\n", quote("seen from "+m.from))
	for _, c := range m.clusters {
		fmt.Fprintf(&b, "  subgraph %s {\n    label=%s;\n", quote("cluster_"+c.name), quote(c.name))
		for i := range c.nodes {
			n, style := &c.nodes[i], ""
			lines := []string{escape(n.Name)}
			for _, line := range notes(n) {
				lines = append(lines, escape(line))
			}
			if unreachable(n) != "" || noTunnel(n) != "" {
				style = ", style=dashed"
			}
			fmt.Fprintf(&b, "    %s [label=\"%s\"%s];\n", quote(fullName(n)), strings.Join(lines, `\n`), style)
		}
		b.WriteString("  }\n")
	}
	for _, l := range m.links {
		style := ""
		if l.why != "" {
			style = " [style=dashed, label=" + quote(l.why) + "]"
		}
		fmt.Fprintf(&b, "  %s -- %s%s;\n", quote(fullName(l.a)), quote(fullName(l.b)), style)
	}
	return b.String() + "}\n"
}

func (m mesh) mermaid() string {
	var b strings.Builder
	quote := func(s string) string {
		return strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;").Replace(cli.Clean(s))
	}
	fmt.Fprintf(&b, "%%%% seen from %s\ngraph LR\n", cli.Clean(m.from))
	ids := map[string]string{}
	for i, c := range m.clusters {
		fmt.Fprintf(&b, "  subgraph c%d[\"%s\"]\n", i, quote(c.name))
		for j := range c.nodes {
			n := &c.nodes[j]
			ids[fullName(n)] = fmt.Sprintf("c%dn%d", i, j)
			lines := []string{quote(n.Name)}
			for _, line := range notes(n) {
				lines = append(lines, quote(line))
			}
			fmt.Fprintf(&b, "    %s[\"%s\"]\n", ids[fullName(n)], strings.Join(lines, "<br>"))
		}
		b.WriteString("  end\n")
	}
	for _, l := range m.links {
		arrow := "---"
		if l.why != "" {
			arrow = `-. "` + quote(l.why) + `" .-`
		}
		fmt.Fprintf(&b, "  %s %s %s\n", ids[fullName(l.a)], arrow, ids[fullName(l.b)])
	}
	return b.String()
}

// text prints the nodes, the tunnels between each two clusters, and what is wrong with which.
func (m mesh) text(p cli.Printer) {
	p.Line("seen from %s", m.from)
	var rows [][]string
	for _, c := range m.clusters {
		for i := range c.nodes {
			n := &c.nodes[i]
			state, end, ips := api.OK+" reachable", api.None, api.None
			if why := unreachable(n); why != "" {
				state = api.Warn + " " + why
			}
			if n.Peer != nil && n.Peer.Endpoint.IsValid() {
				end = n.Peer.Endpoint.String()
			}
			if n.Peer != nil && len(n.Peer.AllowedIPs) > 0 {
				ips = fmt.Sprint(n.Peer.AllowedIPs[0])
				if more := len(n.Peer.AllowedIPs) - 1; more > 0 {
					ips += fmt.Sprintf(" +%d", more)
				}
			}
			rows = append(rows, []string{fullName(n), state, end, ips})
		}
	}
	p.Table([]string{"NODE", "STATE", "ENDPOINT", "ALLOWED IPS"}, rows)
	rows = nil
	for _, t := range m.pairs() {
		rows = append(rows, []string{t.a, t.b, fmt.Sprint(t.links), fmt.Sprint(t.down)})
	}
	if len(rows) > 0 {
		p.Line("")
		p.Table([]string{"CLUSTER", "CLUSTER", "TUNNELS", "DOWN"}, rows)
	}
	m.faults(p)
}

// pair counts the tunnels between two clusters.
type pair struct {
	a, b        string
	links, down int
}

func (m mesh) pairs() (out []pair) {
	for _, l := range m.links {
		i := slices.IndexFunc(out, func(t pair) bool { return t.a == l.a.Cluster && t.b == l.b.Cluster })
		if i < 0 {
			out, i = append(out, pair{a: l.a.Cluster, b: l.b.Cluster}), len(out)
		}
		out[i].links++
		if l.why != "" {
			out[i].down++
		}
	}
	slices.SortStableFunc(out, func(x, y pair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	return out
}

// faults prints a line for each node without a tunnel, and for each tunnel that is down.
func (m mesh) faults(p cli.Printer) {
	var lines []string
	for _, c := range m.clusters {
		for i := range c.nodes {
			if why := noTunnel(&c.nodes[i]); why != "" {
				lines = append(lines, fmt.Sprintf("%s no tunnel leads to %s: %s", api.Bad, fullName(&c.nodes[i]), why))
			}
		}
	}
	for _, l := range m.links {
		if l.why != "" {
			lines = append(lines, fmt.Sprintf("%s %s – %s: %s", api.Warn, fullName(l.a), fullName(l.b), l.why))
		}
	}
	if len(lines) > 0 {
		p.Line("")
	}
	for _, line := range lines {
		p.Line("%s", line)
	}
}

package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

const flowsLong = `List who calls whom now, and where: the open connections to shared services, by client and backend.
Of UDP sockets, it lists those that have a backend.

CLIENT is the pod that has the sockets; outside pods, its cgroup, such as
system.slice/backup.service, or its address. SENT and RECEIVED are bytes of the client over TCP
connections that are open; nothing counts those of UDP. RTT is the round-trip time that these
connections measure.

It asks this node; with --context, all nodes of these clusters, and with --node '*', those of this
node's cluster. Clients that run on nodes without strait are not seen.`

// FlowsCommand is strait flows.
func FlowsCommand(a *cli.App) *cobra.Command {
	var services []string // those that exist, asked for if one is named that has no flows
	return cli.List[api.Flow, *api.FlowList]{
		Table: table.Flows, Noun: "service", Namespaced: true,
		Of:    api.Flow.Of,
		Known: func(*api.FlowList) []string { return services },
		Gather: func(ctx context.Context, a *cli.App, names cli.Names) (*api.FlowList, error) {
			l, err := gatherFlows(ctx, a, names.Only())
			if err == nil {
				services = knownServices(ctx, a, l, names)
			}
			return l, err
		},
		Items: func(l *api.FlowList) *[]api.Flow { return &l.Items },
		From:  func(l *api.FlowList) api.Viewpoint { return l.SeenFrom },
		Title: func(l *api.FlowList) string {
			if len(l.Nodes) == 0 {
				return ""
			}
			return titleOf(l.Nodes)
		},
		After: func(p cli.Printer, l *api.FlowList) {
			if len(l.Nodes) == 0 {
				notWhole(p, []api.AskedNode{{Cluster: l.SeenFrom.Cluster, Node: l.SeenFrom.Node, LeftOut: l.LeftOut, Partial: l.Partial}})
			}
			notWhole(p, l.Nodes)
		},
		Outcome: func(l *api.FlowList) error { return outcomeOf(l.Nodes) },
		Empty:   "no socket is open to a shared service here",
	}.Fill(a, &cobra.Command{
		Use:   "flows [[NAMESPACE/]NAME...]",
		Short: "List who calls whom now: open connections by client, service and backend",
		Long:  flowsLong,
		Example: "  strait flows\n  strait flows shop/cart --context c1 --context c2\n" +
			"  strait flows -n shop -o wide --watch",
		ValidArgsFunction: a.CompleteService,
	})
}

// gatherFlows asks the nodes that the flags choose.
func gatherFlows(ctx context.Context, a *cli.App, service string) (*api.FlowList, error) {
	if every, err := a.AsksCluster(ctx); err != nil {
		return nil, err
	} else if !every {
		return cli.Ask(ctx, a, askFlows(service).one)
	}
	return mergedFlows(askEach(ctx, a, askFlows(service))), nil
}

// askFlows asks who calls one service, or all for "".
func askFlows(service string) question[api.FlowList] {
	return question[api.FlowList]{path: "flows", kind: api.KindFlows, service: service, from: func(l *api.FlowList) api.Viewpoint { return l.SeenFrom },
		one: func(c *client.Client, ctx context.Context) (*api.FlowList, error) { return c.Flows(ctx, service) }}
}

// mergedFlows is one list of what several nodes answered.
func mergedFlows(all []answered[api.FlowList]) *api.FlowList {
	merged := &api.FlowList{Meta: api.Meta{APIVersion: api.APIVersion, Kind: api.KindFlows}, Items: []api.Flow{}}
	for _, x := range all {
		if x.answer != nil {
			x.LeftOut, x.Partial = x.answer.LeftOut, x.answer.Partial
			merged.Items = append(merged.Items, x.answer.Items...)
		}
		merged.Nodes = append(merged.Nodes, x.AskedNode)
	}
	api.SortFlows(merged.Items)
	return merged
}

// knownServices lists the services, if one is named that has no flows. If that fails, the names are
// taken as they are.
func knownServices(ctx context.Context, a *cli.App, l *api.FlowList, names cli.Names) []string {
	if !slices.ContainsFunc(names.Exact, func(name string) bool {
		return !slices.ContainsFunc(l.Items, func(f api.Flow) bool { return f.Of() == name })
	}) {
		return nil
	}
	one := *a
	if contexts := a.From.Each(); len(contexts) > 0 {
		one = a.Only(contexts[0])
	}
	if one.From.Node == api.EveryNode {
		one.From.Node = ""
	}
	list, err := cli.Ask(ctx, &one, (*client.Client).Services)
	if err != nil {
		return names.Exact
	}
	var out []string
	for _, s := range list.Items {
		out = append(out, s.Name)
	}
	return out
}

// titleOf is the first line of what several nodes answered.
func titleOf(nodes []api.AskedNode) string { return "clients on " + nodesOf(nodes) }

// nodesOf is which nodes answered.
func nodesOf(nodes []api.AskedNode) string {
	clusters, answered := map[string]bool{}, 0
	for _, n := range nodes {
		if n.Error == "" {
			clusters[n.Cluster] = true
			answered++
		}
	}
	if len(nodes) == 1 && answered == 1 {
		return nodes[0].Cluster + "/" + nodes[0].Node
	}
	text := api.Count(answered, "node")
	if answered < len(nodes) {
		text = fmt.Sprintf("%d of %s", answered, api.Count(len(nodes), "node"))
	}
	return text + " of " + api.Count(len(clusters), "cluster")
}

// notWhole prints why nodes have no answer, and what is missing in the answers of others.
func notWhole(p cli.Printer, nodes []api.AskedNode) {
	for _, line := range missingLines(nodes) {
		p.Line("%s", line)
	}
}

// missingLines describes why nodes have no answer, and what is missing in the answers of others.
func missingLines(nodes []api.AskedNode) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, n := range nodes {
		name := n.Cluster + "/" + n.Node
		if n.Node == "" {
			name = "context " + n.Context
		}
		if n.Alone != "" {
			add("%s cluster %s: only node %s was asked: %s", api.Warn, n.Cluster, n.Node, n.Alone)
		}
		if n.Partial != "" {
			add("%s %s: not all sockets could be looked at: %s", api.Warn, name, n.Partial)
		}
		if n.LeftOut > 0 {
			add("%s %s: %s more; name a service to see its own", api.Warn, name, api.Count(n.LeftOut, "flow"))
		}
		if n.Error != "" {
			add("%s %s: %s", api.Bad, name, strings.TrimPrefix(n.Error, name+": "))
			if n.Try != "" {
				add("  try  %s", n.Try)
			}
		}
	}
	return lines
}

// outcomeOf is the exit code if a node did not answer.
func outcomeOf(nodes []api.AskedNode) error {
	if slices.ContainsFunc(nodes, func(n api.AskedNode) bool { return n.Error != "" }) {
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}

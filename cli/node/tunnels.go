package node

import (
	"context"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// tunnels are those of nodes, by the name of the node and of the node that the tunnel leads to, as the mesh of
// the daemon has them. Names are CLUSTER/NODE.
type tunnels map[string]map[string]api.TunnelTo

// askTunnels asks for the tunnels of a node, or of all for "".
func askTunnels(ctx context.Context, a *cli.App, node string) (tunnels, error) {
	list, err := cli.Ask(ctx, a, func(c *client.Client, ctx context.Context) (*api.TunnelList, error) { return c.Tunnels(ctx, node) })
	if err != nil {
		return nil, err
	}
	out := tunnels{}
	for _, n := range list.Items {
		out[n.Node] = map[string]api.TunnelTo{}
		for _, t := range n.Tunnels {
			out[n.Node][t.Node] = t
		}
	}
	return out, nil
}

// join reports whether each of two nodes has a tunnel to the other.
func (t tunnels) join(a, b *api.Node) bool {
	_, there := t[fullName(a)][fullName(b)]
	_, back := t[fullName(b)][fullName(a)]
	return there && back
}

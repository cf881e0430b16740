package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/server"
	"strait.io/strait/internal/problem"
)

// peers implements server.Peers: the nodes of this cluster, whose daemons are reached through the gossip port.
type peers struct{ *Daemon }

var _ server.Peers = peers{}

// Viewpoint implements server.Peers. The server asks for it only once All has returned nodes.
func (p peers) Viewpoint() api.Viewpoint { return p.viewpoint(p.now()) }

// All implements server.Peers.
func (p peers) All() []server.Peer {
	m := p.now()
	if m == nil {
		return nil
	}
	v := p.viewer(m)
	v.heard = p.gossip.Heard()
	return v.siblings()
}

// answer answers a query of another node. The server exists by then: New may call join before it makes it.
func (d *Daemon) answer(conn net.Conn) { d.api.Answer(conn) }

// Dial implements server.Peers.
func (p peers) Dial(ctx context.Context, node string) (net.Conn, error) {
	conn, err := p.gossip.Query(ctx, clustermesh.NodeName(node))
	switch {
	case errors.Is(err, gossip.ErrNoAnswerer):
		err = problem.Refuse("upgrade strait on all nodes, or ask on that node itself", "its straitd is of a version that answers no queries of other nodes")
	case errors.Is(err, gossip.ErrWrongKey):
		err = problem.Refuse("give all nodes the same gossip key", "its straitd has another gossip key")
	}
	return conn, err
}

// siblings returns the nodes of this node's cluster: those that have records, and those that the cluster lists.
func (v viewer) siblings() []server.Peer {
	own := v.self.Origin()
	known := map[clustermesh.NodeName]bool{own.Node: true}
	for _, name := range v.state.Records.Get(clustermesh.Origin{Cluster: own.Cluster}).Content.Nodes {
		known[name] = true
	}
	for r := range v.state.Nodes() {
		if r.Origin.Cluster == own.Cluster {
			known[r.Origin.Node] = true
		}
	}
	out := make([]server.Peer, 0, len(known))
	for name := range known {
		o := clustermesh.Origin{Cluster: own.Cluster, Node: name}
		p := server.Peer{Name: string(name), Contact: v.state.Contacts.Get(o).String(), Heard: v.heard[o]}
		if o == own {
			p.Contact = api.Self
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b server.Peer) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

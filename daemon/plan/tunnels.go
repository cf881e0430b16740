package plan

import (
	"net/netip"
	"reflect"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
)

// tunnels are a plan's peers, sources and routes, and the nodes that they were made from. Most
// turns change no node and reuse those of the previous plan.
type tunnels struct {
	nodes      map[clustermesh.Origin]plannedNode
	listeners  []datapath.Listener
	host       Host
	own        datapath.Own
	remotes    []Remote
	clusterIPs []netip.Prefix
	peers      []datapath.Peer
	ends       []End
	guests     []Guest
	admitted   []Admitted
	sources    datapath.Sources
	routes     []datapath.Route
	problems   []clustermesh.Problem
}

// plannedNode is what a node said, and whether it was dead.
type plannedNode struct {
	*clustermesh.Node
	dead bool
}

// update plans them again if a node came, went, died, came back or publishes something else about
// itself, or if other addresses are the host's, strait's own, or kept inside, or the guests change.
func (t *tunnels) update(m mesh) {
	if m.host.Unknown || t.upToDate(m) {
		return
	}
	t.listeners = m.listeners()
	t.host, t.own, t.remotes, t.clusterIPs, t.guests = m.host, m.own, m.remotes, m.clusterIPs, m.guests
	t.nodes = map[clustermesh.Origin]plannedNode{}
	for r := range m.state.Nodes() {
		t.nodes[r.Origin] = plannedNode{r.Content.Node, m.dead(r.Origin)}
	}
	m.held = t.held()
	m.forbidden = newForbidden(m)
	t.peers, t.ends, t.problems = m.peers()
	t.sources = m.sources()
	guests, reach, admitted, refused := m.admit(t.sources)
	t.peers, t.problems = append(t.peers, guests...), append(t.problems, refused...)
	t.sources.Guests, t.admitted = reach, admitted
	t.routes = m.routes(t.peers, t.sources.Node)
	closed, problems := m.closed(t.routes)
	t.routes, t.problems = append(t.routes, closed...), append(t.problems, problems...)
	slices.SortFunc(t.routes, func(a, b datapath.Route) int { return comparePrefix(a.Dst, b.Dst) })
}

// held returns the nodes to which a tunnel leads, with what makes it theirs.
func (t *tunnels) held() map[clustermesh.Origin]heldEnd {
	out := make(map[clustermesh.Origin]heldEnd, len(t.ends))
	for _, e := range t.ends {
		if e.Underlay.IsValid() {
			out[e.Origin] = heldEnd{e.Key, e.Underlay}
		}
	}
	return out
}

func (t *tunnels) upToDate(m mesh) bool {
	if !slices.Equal(t.listeners, m.listeners()) || !t.host.equal(m.host) || !t.own.Equal(m.own) ||
		!slices.Equal(t.remotes, m.remotes) || !slices.Equal(t.clusterIPs, m.clusterIPs) || !slices.EqualFunc(t.guests, m.guests, Guest.equal) {
		return false
	}
	nodes := 0
	for o, r := range m.state.Records {
		now := r.Content.Node
		if o.Node == "" || now == nil {
			continue
		}
		nodes++
		was, known := t.nodes[o]
		if !known || was.dead != m.dead(o) || was.Node != now && !reflect.DeepEqual(was.Node, now) {
			return false
		}
		if was.Node != now { // a new record with the same content
			t.nodes[o] = plannedNode{now, was.dead}
		}
	}
	return t.nodes != nil && nodes == len(t.nodes)
}

package plan

import (
	"net/netip"
	"reflect"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// tunnels are a plan's peers, sources and routes, and the nodes that they were made from. Most
// turns change no node and reuse those of the previous plan.
type tunnels struct {
	nodes      []node // sorted by origin
	planned    bool
	had        map[key.Public]Had // by the device, until a plan has it
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
	// disputed are the nodes whose place counts, since others have their underlay addresses too.
	disputed map[clustermesh.Origin]bool
	places   *places
	// kept is what the last plan gave to whom that was made from all that there is. From part of it, a plan
	// gives a thing to the only one that was heard yet, which does not mean that it had it before.
	kept kept
}

// kept is what a plan gave to whom.
type kept struct {
	ends     []End
	admitted []Admitted
	places   *places
}

// update plans them again if a node came, went, died, came back or publishes something else about
// itself, or if other addresses are the host's, strait's own, or kept inside, or the guests change.
func (t *tunnels) update(m mesh) {
	if m.host.Unknown {
		return
	}
	if nodes, same := t.same(m); same {
		t.nodes = nodes
	} else {
		t.plan(m)
	}
	if !m.learning {
		t.kept = kept{t.ends, t.admitted, t.places}
		t.forgetHad()
	}
}

func (t *tunnels) plan(m mesh) {
	t.listeners = m.listeners()
	t.host, t.own, t.remotes, t.clusterIPs, t.guests = m.host, m.own, m.remotes, m.clusterIPs, m.guests
	m.rivals = rivals{}
	m.held, m.disputed = t.held(m), map[clustermesh.Origin]bool{}
	m.heldGuests, m.guestKeys = t.heldGuests(m), map[key.Public]string{}
	m.forbidden = newForbidden(m)
	nodes := m.nodes()
	t.nodes, t.planned = nodes, true
	owned, lost, overlaps := m.ownedPrefixes(nodes)
	m.owned = owned
	t.peers, t.ends, t.problems = m.peers(nodes, owned)
	t.problems = append(t.problems, overlaps...)
	t.problems = append(t.problems, m.rivals.problems()...)
	t.places = m.places(nodes, owned, lost, t.kept.places)
	t.disputed = m.disputed
	t.sources = m.sources()
	guests, reach, admitted, refused := m.admit(t.sources)
	t.peers, t.problems = append(t.peers, guests...), append(t.problems, refused...)
	t.sources.Guests, t.admitted = reach, admitted
	t.routes = m.routes(t.peers, t.sources.Node)
	closed, problems := m.closed(t.routes)
	t.routes, t.problems = append(t.routes, closed...), append(t.problems, problems...)
	slices.SortFunc(t.routes, func(a, b datapath.Route) int { return comparePrefix(a.Dst, b.Dst) })
}

// held returns what nodes were given, and what they had of the device.
func (t *tunnels) held(m mesh) had {
	h := had{make(map[clustermesh.Origin]*End, len(t.kept.ends)), m.deviceHad(t.had)}
	for i := range t.kept.ends {
		h.ends[t.kept.ends[i].Origin] = &t.kept.ends[i]
	}
	return h
}

// same reports whether all that the tunnels are planned from is as it was, and returns the nodes as they are
// now: records can be new and have the same content.
func (t *tunnels) same(m mesh) (now []node, same bool) {
	if !t.planned || !slices.Equal(t.listeners, m.listeners()) || !t.host.equal(m.host) || !t.own.Equal(m.own) ||
		!slices.Equal(t.remotes, m.remotes) || !slices.Equal(t.clusterIPs, m.clusterIPs) || !slices.EqualFunc(t.guests, m.guests, Guest.equal) ||
		len(t.nodes) != m.count() {
		return nil, false
	}
	now = t.nodes
	for i, was := range t.nodes {
		r := m.state.Records[was.origin]
		if r.Content.Node == nil {
			return nil, false
		}
		is := m.node(r)
		if is == was {
			continue
		}
		if was.dead != is.dead || was.keyProven != is.keyProven || t.disputed[was.origin] && was.at != is.at ||
			was.Node != is.Node && !reflect.DeepEqual(was.Node, is.Node) {
			return nil, false
		}
		if sameList(now, t.nodes) {
			now = slices.Clone(now)
		}
		now[i] = is
	}
	return now, true
}

// count returns how many nodes there are.
func (m mesh) count() (n int) {
	for o, r := range m.state.Records {
		if o.Node != "" && r.Content.Node != nil {
			n++
		}
	}
	return n
}

package mesh

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// Past is what a mesh hands on to the next one of the same node. The zero value is a fresh
// start. It is immutable.
type Past struct {
	// last is the last mesh. It stays if nothing that it is made from changes, or while the
	// machine's addresses cannot be read.
	last *Mesh
	// kept is the last mesh that was made from all that there is: who has something keeps it. A
	// mesh that is made from part of it gives a thing to the only node that is known yet, which
	// does not mean that the node had it before.
	kept *Mesh
	// had is what the device had before the first mesh, by key, until a mesh has it.
	had map[key.Public]Had

	// The others are what last was made from.
	in        Inputs // without State and Dead
	nodes     []node // sorted by origin
	listeners []datapath.Listener
	seen      seen
	// disputed are the nodes of which it counts where they are, since others have their underlay
	// addresses too.
	disputed map[clustermesh.Origin]bool
}

// Of returns the mesh as a node sees it, and the past for the next one. The last mesh is
// returned again if a new one would be the same.
func Of(in Inputs, past Past) (*Mesh, Past) {
	if past.had == nil {
		past.had = byKey(in.Device)
	}
	if in.Host.Unknown {
		if past.last == nil {
			return &Mesh{}, past
		}
		return past.last, past
	}
	if nodes, same := past.same(in); same {
		past.nodes = nodes
	} else {
		past = past.next(in)
	}
	past.seen = seen{in.State.Records, in.State.Proven, in.Dead}
	if !in.Learning {
		past.kept = past.last
		past.had = past.forget()
	}
	return past.last, past
}

// next makes a new mesh.
func (p Past) next(in Inputs) Past {
	m := work{Inputs: in, rivals: rivals{}, disputed: map[clustermesh.Origin]bool{}, guestKeys: map[key.Public]string{}}
	m.had = had{map[clustermesh.Origin]*End{}, m.deviceHad(p.had)}
	if p.kept != nil {
		for i := range p.kept.Ends {
			m.had.ends[p.kept.Ends[i].Origin] = &p.kept.Ends[i]
		}
	}
	m.hadGuests = m.guestsThatHad(p.kept)
	p.nodes, p.listeners, p.disputed = in.nodes(), in.listeners(), m.disputed
	p.last = m.mesh(p.nodes, p.kept)
	p.in = in
	p.in.State, p.in.Dead = clustermesh.State{}, nil // seen has them
	return p
}

// same reports whether all that the last mesh was made from is as it was, and returns the nodes as
// they are now: records can be new and have the same content.
func (p Past) same(in Inputs) (now []node, same bool) {
	if p.last == nil || !p.in.equal(in) || !slices.Equal(p.listeners, in.listeners()) {
		return nil, false
	}
	now = p.nodes
	cloned := false
	for o := range p.seen.changed(in) {
		r := in.State.Records.Get(o)
		i, had := slices.BinarySearchFunc(now, o, func(n node, o clustermesh.Origin) int { return n.origin.Compare(o) })
		if has := o.Node != "" && r.Content.Node != nil; has != had {
			return nil, false
		} else if !has {
			continue
		}
		was, is := now[i], in.node(r)
		if was.dead != is.dead || was.keyProven != is.keyProven || p.disputed[was.origin] && was.at != is.at ||
			was.Node != is.Node && !reflect.DeepEqual(was.Node, is.Node) {
			return nil, false
		}
		is.Node = was.Node
		if is == was {
			continue
		}
		if !cloned {
			now, cloned = slices.Clone(now), true
		}
		now[i] = is
	}
	return now, true
}

// equal reports whether two Inputs differ at most in what nodes publish, and what is known of them.
func (in Inputs) equal(o Inputs) bool {
	return in.Self == o.Self && in.On == o.On && slices.Equal(in.CIDRs, o.CIDRs) && in.Host.equal(o.Host) && in.Own.Equal(o.Own) &&
		slices.Equal(in.Remotes, o.Remotes) && slices.Equal(in.ClusterIPs, o.ClusterIPs) && slices.EqualFunc(in.Guests, o.Guests, Guest.equal)
}

// seen is what nodes was made from.
type seen struct {
	records clustermesh.ByOrigin[clustermesh.Record]
	proven  clustermesh.ByOrigin[netip.AddrPort]
	dead    map[clustermesh.Origin]bool
}

// changed returns the origins of which something may have changed since.
func (s seen) changed(in Inputs) map[clustermesh.Origin]bool {
	out := map[clustermesh.Origin]bool{}
	for o := range in.State.Records.Since(s.records) {
		out[o] = true
	}
	for o := range in.State.Proven.Since(s.proven) {
		out[o] = true
	}
	for o := range s.dead {
		out[o] = true
	}
	for o := range in.Dead {
		out[o] = true
	}
	return out
}

// forget returns what the device had without what peers of the last mesh have in the same way, and
// without what nodes had that proved that they have the key, wherever they have moved since: the
// mesh knows now what is theirs.
func (p Past) forget() map[key.Public]Had {
	if len(p.had) == 0 {
		return p.had
	}
	left := maps.Clone(p.had)
	for i, e := range p.last.Ends {
		if e.Why == "" && p.nodes[i].keyProven {
			delete(left, e.Key)
		}
	}
	for _, peer := range p.last.Peers() {
		h, is := left[peer.Key]
		same := peer.Guest || peer.Underlay == h.Underlay
		if is && same && slices.ContainsFunc(peer.AllowedIPs, func(q netip.Prefix) bool { return slices.Contains(h.AllowedIPs, q) }) {
			delete(left, peer.Key)
		}
	}
	return left
}

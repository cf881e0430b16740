package node

import (
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/observe"
)

// observer is what a node sees of other daemons: who is there and where, whom to probe or to ask, how far
// away they are, and where to look for more.
type observer struct {
	*core
	contacts  *observe.Contacts
	witness   observe.Witness
	distances *observe.Distances
	seeds     *member.Seeds
	records   records
	roomHas   clustermesh.ByOrigin[clustermesh.Record] // those of which the room knows
	everySeed bool                                     // all seeds were reached in the last round
	clocks    clocks
	seedless  map[string]time.Time // since when seeds fail
}

// records are those that a node has.
type records interface {
	Record(clustermesh.Origin) (clustermesh.Record, bool)
	Records() clustermesh.ByOrigin[clustermesh.Record]
}

func newObserver(c *core, distances map[clustermesh.ClusterName]uint32) *observer {
	return &observer{
		core: c, contacts: observe.NewContacts(c.cfg.Self), distances: observe.NewDistances(c.cfg.Self.Cluster, distances, c.now),
		seeds: member.NewSeeds(c.cfg.Seeds, c.cfg.Bind, c.cfg.Advertise), seedless: map[string]time.Time{},
	}
}

// Heard returns when each other node was last heard in this life of the daemon.
func (v *observer) Heard() map[clustermesh.Origin]time.Time { return v.contacts.Heard() }

// areKnown reports whether other nodes are known, heard or not.
func (v *observer) areKnown() bool {
	for o := range v.records.Records().All() {
		if o.Node != "" && o != v.cfg.Self {
			return true
		}
	}
	return false
}

// knowMembers gives the room the nodes that have records here, or are listed by their clusters.
func (v *observer) knowMembers() {
	before, now := v.roomHas, v.records.Records()
	v.roomHas = now
	news := map[clustermesh.Origin]bool{}
	if before.Len() == 0 {
		news[v.cfg.Self] = true
	}
	for o := range now.Since(before) {
		if o.Node != "" {
			news[o] = true
			continue
		}
		was, is := before.Get(o).Content.Nodes, now.Get(o).Content.Nodes
		if slices.Equal(was, is) {
			continue
		}
		for _, name := range slices.Concat(was, is) {
			news[clustermesh.Origin{Cluster: o.Cluster, Node: name}] = true
		}
	}
	for o := range news {
		_, held := now.Lookup(o)
		_, listed := slices.BinarySearch(now.Get(clustermesh.Origin{Cluster: o.Cluster}).Content.Nodes, o.Node)
		news[o] = held || listed || o == v.cfg.Self
	}
	if len(news) > 0 {
		v.cfg.Room.Know(news)
	}
}

// alive notes whether a sign of life changed the contact with a node.
func (v *observer) alive(changed bool) {
	if changed {
		v.touch()
		v.actions.Beat = true // the leader may have to give way
	}
}

// Probe is a machine to probe, at all its addresses.
type Probe struct {
	Node  clustermesh.Origin
	Addrs []netip.AddrPort
}

// Probes returns the probes that are due. Probed takes the result of each.
func (v *observer) Probes(now time.Time) (out []Probe) {
	if now.Sub(v.started) <= startGrace {
		return nil
	}
	records := v.records.Records()
	for _, o := range v.contacts.Due(records, now) {
		out = append(out, Probe{o, v.contacts.ProbeAddrs(o, records.Get(o))})
	}
	return out
}

// Place is a node, and where to dial it.
type Place struct {
	Node clustermesh.Origin
	At   netip.AddrPort
}

// Unmet returns the members to ask who they are, because they have not proven that they are there. Asked
// takes the result of each.
func (v *observer) Unmet(now time.Time) (out []Place) {
	for _, o := range v.contacts.Unmet(now) {
		out = append(out, Place{o, v.Addr(o, now)})
	}
	return out
}

// Asked takes the result of asking a member who it is: whether it has proven to be that node. Stopped is
// true if the daemon ends, so that the result means nothing.
func (v *observer) Asked(p Place, proven, stopped bool, now time.Time) {
	v.now = now
	if !proven && !stopped {
		v.dialled(p.Node, p.At, false)
	}
	if v.contacts.Asked(p.Node, now, v.cfg.Random) {
		v.touch()
	}
}

// Addr returns where to dial a node.
func (v *observer) Addr(o clustermesh.Origin, now time.Time) netip.AddrPort {
	r, _ := v.records.Record(o)
	return v.contacts.Place(o, r, now)
}

// Missed notes that a node did not prove who it is where it was dialled.
func (v *observer) Missed(o clustermesh.Origin, at netip.AddrPort, now time.Time) {
	v.now = now
	v.dialled(o, at, false)
}

// dialled notes whether a node proved who it is where it was dialled.
func (v *observer) dialled(o clustermesh.Origin, at netip.AddrPort, proven bool) {
	r, _ := v.records.Record(o)
	if v.contacts.Dialled(o, r, at, proven, v.now) {
		v.touch()
	}
}

// isAt reports whether a node is at an address, as more than memberlist reports.
func (v *observer) isAt(o clustermesh.Origin, at netip.Addr) bool {
	r, _ := v.records.Record(o)
	return v.contacts.Trusted(o, r, at)
}

// Pinged notes how long a node took to answer, and what its clock showed; zero if it did not say.
func (v *observer) Pinged(m member.ID, at netip.Addr, rtt time.Duration, there, now time.Time) {
	if !v.isAt(m.Origin, at) {
		return
	}
	v.now = now
	if m.Origin.Cluster != v.cfg.Self.Cluster {
		v.distances.Ping(m.Origin, rtt, there, now)
	}
	if !there.IsZero() {
		v.compareClock(m.Origin, there, rtt)
	}
}

// measure looks at the distances of clusters.
func (v *observer) measure() {
	if !v.distances.Update(v.contacts.Alive(), v.now) {
		return
	}
	v.actions.Distances = v.distances.Steps()
	v.log(Info, "the distances of clusters changed", "steps", v.actions.Distances)
	v.actions.Changed = true
}

// RTTs returns the round-trip times of other clusters' nodes, the shortest of the last pings.
func (v *observer) RTTs() map[clustermesh.Origin]time.Duration { return v.distances.RTTs() }

// Ahead returns by how much the clock of another cluster's node is ahead of this machine's; see
// observe.Distances.
func (v *observer) Ahead(o clustermesh.Origin) (by time.Duration, known bool) {
	return v.distances.Ahead(o)
}

// Distances returns how far away clusters are that are not among the nearest, in steps; see
// observe.Distances.
func (v *observer) Distances() map[clustermesh.ClusterName]uint32 { return v.distances.Steps() }

// Contacts returns how this node sees the others. It changes with each event.
func (v *observer) Contacts() *observe.Contacts { return v.contacts }

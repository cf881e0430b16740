package observe

import (
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

const (
	// farGrace is how long a member of another cluster to which no stream is wanted has until it is
	// asked who it is: until then relays report that they hear its cluster.
	farGrace = 3 * time.Second
	// slowStart is how long a stream that is wanted can take to begin, and lostFor how long one can
	// be gone, before the neighbour is doubtful: one of two waits for the other to dial, and a
	// stream that is replaced is gone for a moment.
	slowStart = 3 * time.Second
	lostFor   = 500 * time.Millisecond
	// linkStalled is how long nothing must come of a cluster until it counts as not heard: longer
	// than a busy machine is late.
	linkStalled = 3 * time.Second
)

// follow is whether there should be a stream to a node, and since when there should be, or is none.
type follow struct {
	wanted bool
	since  time.Time
	had    bool // since then, there was one
}

// grace is how long a member has to open a stream before it is asked who it is.
func (n *contact) grace() time.Duration {
	if n.far && !n.follow.wanted && n.rounds == 0 {
		return farGrace
	}
	return metGrace
}

// Follow sets to which nodes there should be a stream (true), or no longer (false).
func (c *Contacts) Follow(neighbours map[clustermesh.Origin]bool, now time.Time) {
	for o, wanted := range neighbours {
		n := c.node(o)
		n.follow = follow{wanted: wanted, since: now, had: n.streams > 0}
		if !wanted {
			n.streamed = false // so that its end says nothing about the node
		} else if soon := now.Add(metGrace); soon.Before(n.ask) {
			if n.due.Equal(n.ask) {
				n.due = soon
			}
			n.ask = soon
		}
		c.note(n)
	}
}

// Doubtful returns the nodes to which there should be a stream, and which send nothing.
func (c *Contacts) Doubtful(now time.Time) (out map[clustermesh.Origin]bool) {
	for i := range c.slots {
		n := c.slots[i].contact
		if !n.follow.wanted || !n.isDoubtful(now) {
			continue
		}
		if out == nil {
			out = map[clustermesh.Origin]bool{}
		}
		out[n.origin] = true
	}
	return out
}

func (n *contact) isDoubtful(now time.Time) bool {
	switch gone := now.Sub(n.follow.since); {
	case n.streams > 0:
		return now.Sub(n.framed) > stalled
	case n.follow.had:
		return gone > lostFor
	default:
		return gone > slowStart
	}
}

// Known returns how many nodes the clusterset has by the records, with this one.
func (c *Contacts) Known() int { return c.described + 1 }

// Meshed returns the members that know no relays. The map is never changed afterwards.
func (c *Contacts) Meshed() map[clustermesh.Origin]bool { return c.meshed.share() }

// Unknown returns the members without a record of themselves. The map is never changed afterwards.
func (c *Contacts) Unknown() map[clustermesh.Origin]bool { return c.unknown.share() }

// Use returns what other nodes say about being relays. The map is never changed afterwards.
func (c *Contacts) Use() map[clustermesh.Origin]clustermesh.RelayUse { return c.use.share() }

// Basis differs if Known, Meshed, Unknown or Use differs.
type Basis struct{ known, meshed, unknown, use int }

// Basis returns that of now.
func (c *Contacts) Basis() Basis {
	return Basis{c.described, c.meshed.changes, c.unknown.changes, c.use.changes}
}

// set is a map that is copied before it changes once it was shared.
type set[V any] struct {
	of      map[clustermesh.Origin]V
	shared  bool
	changes int
}

func (s *set[V]) share() map[clustermesh.Origin]V {
	s.shared = true
	return s.of
}

func (s *set[V]) put(o clustermesh.Origin, is bool, v V) {
	if s.shared {
		s.of, s.shared = maps.Clone(s.of), false
	}
	if s.changes++; !is {
		delete(s.of, o)
		return
	}
	if s.of == nil {
		s.of = map[clustermesh.Origin]V{}
	}
	s.of[o] = v
}

// Sees returns what streams show: of which other clusters a daemon is heard, and which members of this
// one are not any more.
func (c *Contacts) Sees(now time.Time) (out Sight) {
	for i := range c.slots {
		s := &c.slots[i]
		switch {
		case s.is&isMember == 0:
		case !s.far:
			if s.follow.wanted && s.met() && s.suspect(now) {
				out.Silent = append(out.Silent, s.origin.Node)
			}
		case s.streams > 0 && now.Sub(s.framed) <= linkStalled && s.met() && !slices.Contains(out.Heard, s.origin.Cluster):
			out.Heard = append(out.Heard, s.origin.Cluster)
		}
	}
	slices.Sort(out.Heard)
	slices.Sort(out.Silent)
	return out
}

// Believe sets what relays see. It reports whether the contact with a node may have changed.
func (c *Contacts) Believe(all Sight) (changed bool) {
	linked, silent := map[clustermesh.ClusterName]bool{}, map[clustermesh.NodeName]bool{}
	for _, name := range all.Heard {
		linked[name] = true
	}
	for _, name := range all.Silent {
		silent[name] = true
	}
	c.linked = linked
	for i := range c.slots {
		n := c.slots[i].contact
		vouched, suspected := n.far && linked[n.origin.Cluster], !n.far && silent[n.origin.Node]
		if vouched != n.vouched || suspected != n.suspected {
			changed = changed || vouched != n.vouched
			n.vouched, n.suspected = vouched, suspected
			c.note(n)
		}
	}
	return changed
}

// Claimed sets which nodes of another cluster it takes for dead. Those that are Reported are asked for
// a proof, and are not Reported any more if they do not give it.
func (c *Contacts) Claimed(cluster clustermesh.ClusterName, dead map[clustermesh.Origin]bool, now time.Time) (changed bool) {
	for i := range c.slots {
		n := c.slots[i].contact
		if n.origin.Cluster != cluster || n.claimed == dead[n.origin] {
			continue
		}
		before := n.state()
		n.claimed, n.denied, n.ask = dead[n.origin], false, now
		changed = changed || n.state() != before
		c.note(n)
	}
	return changed
}

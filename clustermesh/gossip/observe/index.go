package observe

import (
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

// index is what Contacts knows of all nodes together, kept up with each change of one. So no event
// has to look at what is known of every node. A few questions look through the slots: of 10,000
// nodes, that takes 10 to 100 µs.
type index struct {
	slots           []slot
	asking, probing int // how many are being asked, and probed
	alive, expected clustermesh.Draft[bool]
	members         roster
	older           int                       // nodes whose daemons do not know that few nodes of a cluster decide
	described       int                       // other nodes with a record of themselves
	meshed          set[bool]                 // members that know no relays
	unknown         set[bool]                 // members without a record of themselves
	use             set[clustermesh.RelayUse] // nodes that say something about being relays
	contacts        clustermesh.Draft[clustermesh.Contact]
}

// slot is one node, with what shows for most nodes that there is nothing to do about them.
type slot struct {
	*contact
	is     kinds
	framed time.Time // that of the contact, beside the others' in memory
}

// kinds are what a node is for the questions about all nodes. They do not depend on the time.
type kinds uint16

const (
	isAlive kinds = 1 << iota
	isExpected
	isMember
	isAsked
	isProbed
	// isUnproven: to be asked who it is, once it is time.
	isUnproven
	// isLost: to be probed, once it is time. isWatched: that too, if its stream falls silent.
	isLost
	isWatched
	// isParting: memberlist calls a life of it gone, and its stream carries frames. isSeveral: it has more
	// than one life.
	isParting
	isSeveral
	// isSilent: it has a record, and its machine is silent.
	isSilent
	// isMeshed: a member that knows no relays. isUnknown: one without a record of itself.
	isMeshed
	isUnknown
	// isIdle: it has no record, life or stream, and nothing is asked: it is forgotten once its last
	// proof is old.
	isIdle
)

// kindsOf returns what a node is. Of the node itself, only what its lives are matters.
func (c *Contacts) kindsOf(n *contact, silent bool) (is kinds) {
	add := func(k kinds, that bool) {
		if that {
			is |= k
		}
	}
	add(isAsked, n.asking)
	add(isProbed, n.probing)
	add(isSeveral, len(n.lives) > 1)
	for _, l := range n.lives {
		add(isParting, l.gone)
	}
	if n.origin == c.self {
		return is
	}
	state := n.state()
	alive, member := state.Heard(), len(n.lives) > 0
	add(isAlive, alive)
	add(isMember, member)
	add(isExpected, alive || member && state == clustermesh.Held)
	add(isUnproven, n.isUnproven())
	add(isMeshed, member && n.written.ofNode && n.written.speaks < clustermesh.SpeaksRelays)
	add(isUnknown, member && !n.written.ofNode)
	add(isSilent, n.written.known && silent)
	add(isIdle, !n.written.known && !member && n.streams == 0 && !n.probing && !n.asking)
	if n.written.known && n.origin.Node != "" && !n.probing {
		add(isLost, n.isLost())
		add(isWatched, alive && n.streamed && n.streams > 0)
	}
	return is
}

// note brings the index up to date with a node. It is called after each change of its contact.
func (c *Contacts) note(n *contact) {
	s := &c.slots[n.at]
	of := n.of()
	was, is := s.is, c.kindsOf(n, of == clustermesh.Silent)
	s.is, s.framed = is, n.framed
	changed := was ^ is
	if changed&isAlive != 0 {
		put(&c.alive, n.origin, is&isAlive != 0, true)
	}
	if changed&isExpected != 0 {
		put(&c.expected, n.origin, is&isExpected != 0, true)
	}
	if changed&isMember != 0 {
		c.members.set(n.origin, is&isMember != 0)
	}
	if changed&isMeshed != 0 {
		c.meshed.put(n.origin, is&isMeshed != 0, true)
	}
	if changed&isUnknown != 0 {
		c.unknown.put(n.origin, is&isUnknown != 0, true)
	}
	c.asking += more(was, is, isAsked)
	c.probing += more(was, is, isProbed)
	if n.origin != c.self && of != n.shown {
		n.shown = of
		put(&c.contacts, n.origin, of != clustermesh.Held, of)
	}
}

func put[V any](d *clustermesh.Draft[V], o clustermesh.Origin, is bool, v V) {
	if is {
		d.Set(o, v)
	} else {
		d.Delete(o)
	}
}

// more returns by how much the number of nodes of a kind changes.
func more(was, is, kind kinds) int {
	switch {
	case was&kind == is&kind:
		return 0
	case is&kind != 0:
		return 1
	}
	return -1
}

// add makes room for a node.
func (c *Contacts) add(o clustermesh.Origin) *contact {
	n := &contact{origin: o, at: len(c.slots), far: o.Cluster != c.self.Cluster}
	n.vouched = n.far && c.linked[o.Cluster]
	c.nodes[o] = n
	c.slots = append(c.slots, slot{contact: n})
	c.note(n)
	return n
}

// remove forgets a node that is idle.
func (c *Contacts) remove(n *contact) {
	last := len(c.slots) - 1
	c.slots[n.at] = c.slots[last]
	c.slots[n.at].at = n.at
	c.slots[last] = slot{}
	c.slots = c.slots[:last]
	delete(c.nodes, n.origin)
	c.contacts.Delete(n.origin)
	c.proven.Delete(n.origin)
}

// Know takes note of the records held now.
func (c *Contacts) Know(records records) {
	before := c.known
	c.known = records
	for o := range records.Since(before) {
		rec, known := records.Lookup(o)
		n := c.nodes[o]
		switch {
		case n != nil:
		case !known || o.Node == "" || o == c.self:
			continue
		default:
			n = c.add(o)
		}
		before := n.written
		n.wrote(rec, known)
		c.older += count(n.written.older()) - count(before.older())
		if o != c.self {
			if n.written.relay != before.relay {
				c.use.put(o, n.written.relay != clustermesh.RelayAuto, n.written.relay)
			}
			c.described += count(n.written.ofNode) - count(before.ofNode)
		}
		c.note(n)
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// first returns the first n of some nodes, in an order.
func first(nodes []*contact, n int, compare func(a, b *contact) int) []*contact {
	if n <= 0 {
		return nil
	}
	var out []*contact
	for _, x := range nodes {
		if len(out) == n {
			if compare(out[n-1], x) <= 0 {
				continue
			}
			out = out[:n-1]
		}
		i, _ := slices.BinarySearchFunc(out, x, compare)
		out = slices.Insert(out, i, x)
	}
	return out
}

// roster is a sorted list of nodes of which few change at a time.
type roster struct {
	list    []clustermesh.Origin        // never changed
	changed map[clustermesh.Origin]bool // since list was made: whether they are on it now
}

func (r *roster) set(o clustermesh.Origin, is bool) {
	if r.changed == nil {
		r.changed = map[clustermesh.Origin]bool{}
	}
	r.changed[o] = is
}

// sorted returns the list. It is never changed afterwards.
func (r *roster) sorted() []clustermesh.Origin {
	if len(r.changed) == 0 {
		return r.list
	}
	news := make([]clustermesh.Origin, 0, len(r.changed))
	for o := range r.changed {
		news = append(news, o)
	}
	slices.SortFunc(news, clustermesh.Origin.Compare)
	left, out := r.list, make([]clustermesh.Origin, 0, len(r.list)+len(news))
	for _, o := range news {
		i, was := slices.BinarySearchFunc(left, o, clustermesh.Origin.Compare)
		out = append(out, left[:i]...)
		if left = left[i:]; was {
			left = left[1:]
		}
		if r.changed[o] {
			out = append(out, o)
		}
	}
	r.list, r.changed = append(out, left...), nil
	return r.list
}

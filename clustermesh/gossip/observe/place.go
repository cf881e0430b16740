package observe

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

const (
	// badFor is how long other addresses are tried before one where a node did not prove who it is.
	badFor = 30 * time.Second
	// maxBad bounds those that are remembered: a holder of the gossip key can name addresses.
	maxBad = 16
)

// Dialled notes whether a node proved who it is at an address that was dialled. A dial that another
// address answers for proves nothing of this one, so memberlist's word of where a node is never counts.
// Dialled reports whether Proven differs now.
func (c *Contacts) Dialled(o clustermesh.Origin, rec clustermesh.Record, at netip.AddrPort, proven bool, now time.Time) bool {
	n := c.node(o)
	if proven {
		delete(n.bad, at)
		moved := n.metAddr != at
		if n.metAddr = at; moved {
			put(&c.proven, o, at.IsValid(), at)
		}
		n.stated = n.stated || slices.Contains(stated(rec), at)
		return moved
	}
	if len(n.bad) >= maxBad {
		maps.DeleteFunc(n.bad, func(_ netip.AddrPort, since time.Time) bool { return now.Sub(since) > badFor })
	}
	if n.bad == nil || len(n.bad) >= maxBad {
		n.bad = map[netip.AddrPort]time.Time{}
	}
	n.bad[at] = now
	return false
}

// Missing returns the nodes with a record of themselves that are not alive, or may not have heard
// of this node, sorted: those to look for.
func (c *Contacts) Missing(known records, neighbour func(clustermesh.Origin) bool, now time.Time) (out []clustermesh.Origin) {
	c.Know(known)
	for i := range c.slots {
		s := &c.slots[i]
		if s.is&isWatched != 0 || !s.written.ofNode || s.origin == c.self {
			continue
		}
		if s.is&isAlive == 0 || neighbour(s.origin) && s.oneSided(now) {
			out = append(out, s.origin)
		}
	}
	slices.SortFunc(out, clustermesh.Origin.Compare)
	return out
}

// MayBeAt returns the nodes that are alive, and of which Place can return one of some addresses.
func (c *Contacts) MayBeAt(addrs map[netip.AddrPort]bool, known records) (out []clustermesh.Origin) {
	if len(addrs) == 0 {
		return nil
	}
	for i := range c.slots {
		s := &c.slots[i]
		if s.is&isAlive == 0 {
			continue
		}
		may := addrs[s.metAddr] || addrs[s.where()]
		if rec := known.Peek(s.origin); rec != nil && rec.Content.Node != nil && c.pinned(s.origin.Cluster) {
			n := rec.Content.Node
			for _, a := range n.Addresses[:min(len(n.Addresses), maxAddrs)] {
				may = may || addrs[netip.AddrPortFrom(a, n.GossipPort)]
			}
		}
		if may {
			out = append(out, s.origin)
		}
	}
	slices.SortFunc(out, clustermesh.Origin.Compare)
	return out
}

// Place returns where to dial a node; zero if nothing is known of it. Of a pinned cluster, its record
// comes first, whose addresses the root stated, then where a dial proved who it is. Where memberlist reports
// it is comes last, because a holder of the gossip key can move a member. An address that failed waits
// until the others have failed.
func (c *Contacts) Place(o clustermesh.Origin, rec clustermesh.Record, now time.Time) netip.AddrPort {
	n := c.nodes[o]
	if n == nil {
		return netip.AddrPort{}
	}
	if !c.pinned(o.Cluster) {
		return n.where()
	}
	var best netip.AddrPort
	var failed time.Time // when best failed
	for _, a := range append(stated(rec), n.metAddr, n.where()) {
		at, bad := n.bad[a]
		if !a.IsValid() || a.Port() == 0 {
			continue
		}
		if !bad || now.Sub(at) > badFor {
			return a
		}
		if !best.IsValid() || at.Before(failed) {
			best, failed = a, at
		}
	}
	return best
}

// Trusted reports whether a node is at an address by the word of its root, or because it proved there who
// it is. Where nothing is pinned, memberlist's word is all there is.
func (c *Contacts) Trusted(o clustermesh.Origin, rec clustermesh.Record, at netip.Addr) bool {
	is := func(a netip.AddrPort) bool { return a.Addr() == at }
	return !c.pinned(o.Cluster) || is(c.look(o).metAddr) || slices.ContainsFunc(stated(rec), is)
}

// Proven returns where dials proved who the nodes are.
func (c *Contacts) Proven() clustermesh.ByOrigin[netip.AddrPort] { return c.proven.Share() }

// stated returns where a daemon listens by its node's record.
func stated(rec clustermesh.Record) (out []netip.AddrPort) {
	n := rec.Content.Node
	if n == nil || n.GossipPort == 0 {
		return nil
	}
	for _, a := range n.Addresses[:min(len(n.Addresses), maxAddrs)] {
		out = append(out, netip.AddrPortFrom(a, n.GossipPort))
	}
	return out
}

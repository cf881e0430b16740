package plan

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// had is what nodes had of the clusterset before.
type had struct {
	ends map[clustermesh.Origin]*End // of the last plan
	// peers are those of the device, if there is no last plan: a daemon that was restarted does not know
	// whose they were.
	peers map[key.Public]Had
}

// Had is a peer that the WireGuard device had before the first plan.
type Had struct {
	Key        key.Public
	Underlay   netip.AddrPort
	AllowedIPs []netip.Prefix
}

// Had says what the device had before the first plan, so that a restart changes no owner.
func (p *Planner) Had(peers []Had) {
	p.tunnels.had = make(map[key.Public]Had, len(peers))
	for _, h := range peers {
		p.tunnels.had[h.Key] = h
	}
}

// key reports whether a node had its WireGuard key. To the device, whoever claims the key now could have had
// it; but the tunnel led to the node's address.
func (h had) key(n *node) bool {
	if h.ends != nil {
		e := h.ends[n.origin]
		return e != nil && e.Underlay.IsValid() && e.Key == n.PublicKey
	}
	p, known := h.peers[n.PublicKey]
	return known && slices.Contains(n.listeners(), p.Underlay) &&
		slices.ContainsFunc(n.Prefixes, func(q netip.Prefix) bool { return slices.Contains(p.AllowedIPs, q.Masked()) })
}

// underlay reports whether the tunnel to a node led to an address.
func (h had) underlay(n *node, a netip.AddrPort) bool {
	if h.ends != nil {
		e := h.ends[n.origin]
		return e != nil && e.Underlay == a
	}
	return h.peers[n.PublicKey].Underlay == a
}

// prefix reports whether a node had a prefix.
func (h had) prefix(n *node, p netip.Prefix) bool {
	if h.ends != nil {
		e := h.ends[n.origin]
		return e != nil && slices.Contains(e.AllowedIPs, p)
	}
	return h.key(n) && slices.Contains(h.peers[n.PublicKey].AllowedIPs, p)
}

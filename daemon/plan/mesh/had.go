package mesh

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// had is what nodes had before: of what the device had, it decides; of the rest, the last mesh.
type had struct {
	ends map[clustermesh.Origin]*End // of the last mesh
	device
}

// device is what the WireGuard device had when the daemon started: a daemon that was restarted does
// not know whose that was. Each peer counts until a mesh has it; see forget. Until then its node may
// be missing in the last mesh only because this daemon does not know it yet. Another node that became
// known first would seem to have had what is not its own.
type device struct {
	peers     map[key.Public]Had
	underlays map[netip.AddrPort]bool
	prefixes  map[netip.Prefix]bool
}

// Had is a peer that the WireGuard device had before the first mesh.
type Had struct {
	Key        key.Public
	Underlay   netip.AddrPort
	AllowedIPs []netip.Prefix
}

func byKey(peers []Had) map[key.Public]Had {
	out := make(map[key.Public]Had, len(peers))
	for _, h := range peers {
		out[h.Key] = h
	}
	return out
}

// deviceHad returns what the device had of those that are in the mesh now. What it had of others is free.
func (m work) deviceHad(peers map[key.Public]Had) device {
	d := device{map[key.Public]Had{}, map[netip.AddrPort]bool{}, map[netip.Prefix]bool{}}
	remember := func(k key.Public) {
		h, is := peers[k]
		if !is {
			return
		}
		d.peers[k], d.underlays[h.Underlay] = h, true
		for _, p := range h.AllowedIPs {
			d.prefixes[p] = true
		}
	}
	for r := range m.State.Nodes() {
		remember(r.Content.Node.PublicKey)
	}
	for _, g := range m.Guests {
		remember(g.Key)
	}
	return d
}

// key reports whether a node had its WireGuard key. To the device, each node that claims the key now could have had
// it; but the tunnel led to the node's address.
func (h had) key(n *node) bool {
	if p, is := h.peers[n.PublicKey]; is {
		return slices.Contains(n.listeners(), p.Underlay) &&
			slices.ContainsFunc(n.Prefixes, func(q netip.Prefix) bool { return slices.Contains(p.AllowedIPs, q.Masked()) })
	}
	e := h.ends[n.origin]
	return e != nil && e.Underlay.IsValid() && e.Key == n.PublicKey
}

// underlay reports whether the tunnel to a node led to an address.
func (h had) underlay(n *node, a netip.AddrPort) bool {
	if h.underlays[a] {
		return h.peers[n.PublicKey].Underlay == a
	}
	e := h.ends[n.origin]
	return e != nil && e.Underlay == a
}

// prefix reports whether a node had a prefix.
func (h had) prefix(n *node, p netip.Prefix) bool {
	if h.prefixes[p] {
		return h.key(n) && slices.Contains(h.peers[n.PublicKey].AllowedIPs, p)
	}
	e := h.ends[n.origin]
	return e != nil && slices.Contains(e.AllowedIPs, p)
}

// guest reports whether all of a guest's range were the guest's, and whether that is by the device.
func (d device) guest(g Guest) (had, known bool) {
	for _, p := range g.Range {
		known = known || d.prefixes[p.Masked()]
	}
	all := d.peers[g.Key].AllowedIPs
	return known && !slices.ContainsFunc(g.Range, func(p netip.Prefix) bool { return !slices.Contains(all, p.Masked()) }), known
}

package datapath

import (
	"net/netip"
	"slices"
)

// Guest is a machine outside every cluster that has a tunnel to this node, and what it reaches
// through it. Its WireGuard peer is among Desired.Peers.
type Guest struct {
	Name string `json:"name"`
	// Range are the addresses that it sends from, sorted.
	Range []netip.Prefix `json:"range"`
	// To are what it may call besides this node's pods, sorted: the address that it calls, which a
	// Service can translate.
	To []netip.Prefix `json:"to,omitempty"`
}

// Equal reports whether both reach the same.
func (g Guest) Equal(h Guest) bool {
	return g.Name == h.Name && slices.Equal(g.Range, h.Range) && slices.Equal(g.To, h.To)
}

package api

import (
	"net/netip"

	"strait.io/strait/internal/key"
)

// Guest is a machine outside every cluster for which this cluster has a pin.
type Guest struct {
	Name      string     `json:"name"`
	PublicKey key.Public `json:"publicKey"`
	// Range are the addresses that it may have; To what it may call besides the entry node's pods.
	Range []netip.Prefix `json:"range"`
	To    []netip.Prefix `json:"to,omitempty"`
	// Nodes accept it; all, if it is empty. Elsewhere: the node that answers is not one of them.
	Nodes     []string `json:"nodes,omitempty"`
	Elsewhere bool     `json:"elsewhere,omitempty"`
	// Refused is why the node that answers refuses it; empty if it does not.
	Refused string  `json:"refused,omitempty"`
	Tunnel  *Tunnel `json:"tunnel,omitempty"`
}

// PeerList is the answer of GET /v1/peers, by name.
type PeerList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Items    []Guest   `json:"items"`
}

// NewPeerList makes an answer of guests, which are sorted already.
func NewPeerList(from Viewpoint, items []Guest) *PeerList {
	return &PeerList{Meta{APIVersion, KindPeers}, from, orEmpty(items)}
}

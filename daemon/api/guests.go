package api

import (
	"net/netip"
	"strings"
	"time"

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

// TableHeader names the columns of a guest.
func (Guest) TableHeader() []string {
	return []string{"PEER", "STATE", "RANGE", "REACHES", "ENTRY NODES", "ENDPOINT", "HANDSHAKE"}
}

// TableRow shows what this node makes of the guest.
func (g Guest) TableRow(now time.Time) []string {
	state, end, handshake := OK+" accepted", None, None
	switch {
	case g.Elsewhere:
		state = OK + " accepted by other nodes"
	case g.Refused != "":
		state = Bad + " refused: " + g.Refused
	case g.Tunnel == nil:
		state = Warn + " accepted, not in the device yet"
	default:
		if g.Tunnel.Underlay.IsValid() {
			end = g.Tunnel.Underlay.String()
		}
		handshake = Warn + " never"
		if !g.Tunnel.Handshake.IsZero() {
			handshake = since(now, g.Tunnel.Handshake)
		}
	}
	nodes := "all"
	if len(g.Nodes) > 0 {
		nodes = strings.Join(g.Nodes, " ")
	}
	reaches := []string{"the node's pods"}
	for _, p := range g.To {
		reaches = append(reaches, p.String())
	}
	ranges := make([]string, len(g.Range))
	for i, p := range g.Range {
		ranges[i] = p.String()
	}
	return []string{g.Name, state, strings.Join(ranges, " "), strings.Join(reaches, ", "), nodes, end, handshake}
}

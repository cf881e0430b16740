package table

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"strait.io/strait/daemon/api"
)

// Widths of a node's cells, since its table has many columns. The JSON has the full values.
const (
	nameWidth = 28 // CLUSTER/NODE
	zoneWidth = 16
	addrWidth = 24
)

// Nodes shows what gossip, records and the mesh know about nodes. Of several addresses or prefixes
// it shows the first; the wide form has all.
var Nodes = Table[api.Node]{
	Name: func(n api.Node) string { return n.Cluster + "/" + n.Name },
	Columns: []Column[api.Node]{
		{Name: "NODE", Cell: text(func(n api.Node) string { return api.Short(n.Cluster+"/"+n.Name, nameWidth) })},
		{Name: "CONTACT", Cell: text(contact)},
		{Name: "HEARD", Moving: true, Cell: func(n api.Node, now time.Time) string {
			if n.Contact == api.Self {
				return api.None
			}
			return since(now, n.Heard)
		}},
		{Name: "ZONE", Cell: text(func(n api.Node) string { return api.Short(n.Zone, zoneWidth) })},
		{Name: "ADDRESS", Cell: text(func(n api.Node) string { return api.Short(first(n.Addresses, netip.Addr.String), addrWidth) })},
		{Name: "PODS", Cell: text(podRange)},
		{Name: "ENDPOINTS", Cell: number(func(n api.Node) int { return n.Endpoints })},
		{Name: "TUNNEL", Cell: ofTunnel(func(n api.Node, _ time.Time) string { return api.Short(tunnelEnd(n), addrWidth) })},
		{Name: "CARRIES", Moving: true, State: tunnelState, Cell: ofTunnel(func(n api.Node, _ time.Time) string { return Carries(*n.Tunnel) })},
		{Name: "HANDSHAKE", Moving: true, Cell: ofTunnel(func(n api.Node, now time.Time) string { return handshake(*n.Tunnel, now) })},
		{Name: "SENT/RECEIVED", Moving: true, Cell: ofTunnel(func(n api.Node, _ time.Time) string { return bytes(*n.Tunnel) })},
		{Name: "REGION", Wide: true, Cell: text(func(n api.Node) string { return n.Region })},
		{Name: "ADDRESSES", Wide: true, Cell: text(func(n api.Node) string { return join(n.Addresses, " ", netip.Addr.String) })},
		{Name: "PREFIXES", Wide: true, Cell: text(func(n api.Node) string { return join(n.Prefixes, " ", netip.Prefix.String) })},
		{Name: "VERSION", Wide: true, Cell: text(func(n api.Node) string { return cmp.Or(n.Version, api.None) })},
		{Name: "STAMP", Wide: true, Moving: true, Cell: text(func(n api.Node) string { return n.Stamp })},
	},
}

// ofTunnel is a cell about the tunnel to a node, if there is one.
func ofTunnel(cell func(api.Node, time.Time) string) func(api.Node, time.Time) string {
	return func(n api.Node, now time.Time) string {
		if n.Tunnel == nil {
			return api.None
		}
		return cell(n, now)
	}
}

// contact is the node's state in a few words.
func contact(n api.Node) string {
	switch {
	case n.Dead:
		return fmt.Sprintf("%s dead, said by %d", api.Bad, len(n.Witnesses))
	case n.IsHeard():
		return api.OK + " " + n.Contact
	}
	return api.Warn + " " + n.Contact
}

// entry marks a node through which other clusters call its cluster's ClusterIPs.
const entry = " entry"

func podRange(n api.Node) string {
	ofPods := slices.DeleteFunc(slices.Clone(n.Prefixes), func(p netip.Prefix) bool { return slices.Contains(n.ClusterIPs, p) })
	pods := api.Short(first(ofPods, netip.Prefix.String), addrWidth)
	if len(n.ClusterIPs) > 0 {
		pods = api.Short(pods, addrWidth-len(entry)) + entry
	}
	return pods
}

// tunnelEnd is the address that the tunnel leads to, or only its port if the address is already
// shown.
func tunnelEnd(n api.Node) string {
	if at := n.Tunnel.Underlay; len(n.Addresses) > 0 && at.Addr() == n.Addresses[0] {
		return fmt.Sprintf(":%d", at.Port())
	}
	return n.Tunnel.Underlay.String()
}

func tunnelState(n api.Node) string {
	if n.Tunnel == nil {
		return ""
	}
	return n.Tunnel.State
}

// Carries is what probes found out about the tunnel, in a few words.
func Carries(t api.Tunnel) string {
	switch t.State {
	case "":
		return api.None
	case "carrying":
		return fmt.Sprintf("%s %.1f ms", api.OK, t.RTT)
	case "lossy":
		return fmt.Sprintf("%s %.0f %% lost", api.Warn, 100*t.Loss)
	case "returning":
		return api.Warn + " " + t.State
	case "narrow":
		return api.Bad + " small packets"
	case "one-way":
		return api.Bad + " one way"
	case "silent", "never":
		return api.Bad + " nothing"
	}
	return t.State
}

func handshake(t api.Tunnel, now time.Time) string {
	if t.Handshake.IsZero() {
		return api.Warn + " never"
	}
	return since(now, t.Handshake)
}

func bytes(t api.Tunnel) string { return api.Bytes(t.Sent) + "/" + api.Bytes(t.Received) }

// Peers shows what a node makes of the machines outside every cluster.
var Peers = Table[api.Guest]{
	Name: func(g api.Guest) string { return g.Name },
	Columns: []Column[api.Guest]{
		{Name: "PEER", Cell: text(func(g api.Guest) string { return g.Name })},
		{Name: "STATE", Cell: text(guestState)},
		{Name: "RANGE", Cell: text(func(g api.Guest) string { return join(g.Range, " ", netip.Prefix.String) })},
		{Name: "REACHES", Cell: text(func(g api.Guest) string {
			return strings.TrimSuffix("the node's pods, "+join(g.To, ", ", netip.Prefix.String), ", ")
		})},
		{Name: "ENTRY NODES", Cell: text(func(g api.Guest) string {
			if len(g.Nodes) == 0 {
				return "all"
			}
			return strings.Join(g.Nodes, " ")
		})},
		{Name: "ENDPOINT", Cell: text(func(g api.Guest) string {
			if !connected(g) || !g.Tunnel.Underlay.IsValid() {
				return ""
			}
			return g.Tunnel.Underlay.String()
		})},
		{Name: "HANDSHAKE", Moving: true, Cell: func(g api.Guest, now time.Time) string {
			if !connected(g) {
				return api.None
			}
			return handshake(*g.Tunnel, now)
		}},
		{Name: "SENT/RECEIVED", Wide: true, Moving: true, Cell: text(func(g api.Guest) string {
			if !connected(g) {
				return ""
			}
			return bytes(*g.Tunnel)
		})},
		{Name: "PUBLIC KEY", Wide: true, Cell: text(func(g api.Guest) string { return g.PublicKey.String() })},
	},
}

// connected reports whether the node that answers accepts the guest and has it in its device.
func connected(g api.Guest) bool { return !g.Elsewhere && g.Refused == "" && g.Tunnel != nil }

func guestState(g api.Guest) string {
	switch {
	case g.Elsewhere:
		return api.OK + " accepted by other nodes"
	case g.Refused != "":
		return api.Bad + " refused: " + g.Refused
	case g.Tunnel == nil:
		return api.Warn + " accepted, not in the device yet"
	}
	return api.OK + " accepted"
}

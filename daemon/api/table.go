package api

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Row is a value that prints as one row of a table. A cell with a verdict starts with a glyph and a
// space.
type Row interface {
	// TableHeader names the columns.
	TableHeader() []string
	// TableRow has one cell per column; ages are relative to now.
	TableRow(now time.Time) []string
}

// Table turns values into a header and rows.
func Table[T Row](items []T, now time.Time) (header []string, rows [][]string) {
	var zero T
	for _, item := range items {
		rows = append(rows, item.TableRow(now))
	}
	return zero.TableHeader(), rows
}

// TableHeader names the columns of a cluster.
func (Cluster) TableHeader() []string {
	return []string{"CLUSTER", "STATE", "NODES", "DEAD", "EXPORTS", "ENDPOINTS", "HEARD"}
}

// TableRow shows nodes as alive/known.
func (c Cluster) TableRow(now time.Time) []string {
	state, heard := Warn+" "+string(c.State), since(now, c.Heard)
	switch c.State {
	case Here:
		state, heard = OK+" here", None
	case Joined:
		state = OK + " joined"
	case Quiet:
		state = Warn + " not heard, machines answer"
	}
	if c.Drained > 0 {
		state += ", drained " + Percent(c.Drained)
	}
	if c.Open != nil {
		state += fmt.Sprintf(", %d open", *c.Open)
	}
	dead := None
	if c.Dead > 0 {
		dead = fmt.Sprintf("%s %d", Bad, c.Dead)
	}
	return []string{c.Name, state, fmt.Sprintf("%d/%d", c.Alive, c.Nodes), dead,
		fmt.Sprint(c.Exports), c.endpoints(), heard}
}

// endpoints counts the endpoints, by family if there are both.
func (c Cluster) endpoints() string {
	if six := c.EndpointsIPv6; six > 0 && six < c.Endpoints {
		return fmt.Sprintf("%d IPv4 · %d IPv6", c.Endpoints-six, six)
	}
	return fmt.Sprint(c.Endpoints)
}

// TableHeader names the columns of a backend.
func (Backend) TableHeader() []string {
	return []string{"SERVICE", "FRONTEND", "PORT", "BACKEND", "WHERE", "POD", "TIER", "SHARE", "WEIGHT"}
}

// TableRow shows where connections to the frontend go.
func (b Backend) TableRow(time.Time) []string {
	return []string{b.Service, b.Frontend.String(), orNone(b.Port), b.Addr.String(), b.Where(), orNone(b.Pod),
		orNone(b.Tier), Percent(b.Share), fmt.Sprint(b.Weight)}
}

// Where is "cluster/node", or the cluster alone for an endpoint that names no node.
func (e Endpoint) Where() string {
	if e.Node == "" {
		return e.Cluster
	}
	return e.Cluster + "/" + e.Node
}

// Away is the round-trip time to the endpoint's node, or None.
func (e Endpoint) Away() string {
	if e.RTT == 0 {
		return None
	}
	return fmt.Sprintf("%.1f ms", e.RTT)
}

// TableHeader names the columns of an endpoint.
func (Endpoint) TableHeader() []string {
	return []string{"TIER", "READY", "SHARE", "ENDPOINT", "WHERE", "POD", "REASON"}
}

// TableRow shows why the endpoint is in use or not.
func (e Endpoint) TableRow(time.Time) []string {
	ready := Bad + " no"
	if e.Ready {
		ready = OK + " yes"
	}
	return []string{orNone(e.Tier), ready, Percent(e.Share), e.Addr.String(), e.Where(), orNone(e.Pod), e.Reason}
}

// entry marks a node through which other clusters call its cluster's ClusterIPs.
const entry = " entry"

// Widths of a node's cells, since its table has many columns. The JSON has the full values.
const (
	nameWidth = 28 // CLUSTER/NODE
	zoneWidth = 16
	addrWidth = 24
)

// TableHeader names the columns of a node.
func (Node) TableHeader() []string {
	return []string{"NODE", "CONTACT", "HEARD", "ZONE", "ADDRESS", "PODS", "ENDPOINTS",
		"TUNNEL", "CARRIES", "HANDSHAKE", "SENT/RECEIVED"}
}

// TableRow shows what gossip, records and the mesh know about the node. Of several addresses or
// prefixes it shows the first. The stamp is left to the JSON.
func (n Node) TableRow(now time.Time) []string {
	heard, tunnel := since(now, n.Heard), []string{None, None, None, None}
	if n.Contact == "self" {
		heard = None
	}
	if t := n.Tunnel; t != nil {
		handshake := Warn + " never"
		if !t.Handshake.IsZero() {
			handshake = since(now, t.Handshake)
		}
		tunnel = []string{Short(n.tunnelEnd(), addrWidth), t.carries(), handshake, Bytes(t.Sent) + "/" + Bytes(t.Received)}
	}
	ofPods := slices.DeleteFunc(slices.Clone(n.Prefixes), func(p netip.Prefix) bool { return slices.Contains(n.ClusterIPs, p) })
	pods := Short(first(ofPods, netip.Prefix.String), addrWidth)
	if len(n.ClusterIPs) > 0 {
		pods = Short(pods, addrWidth-len(entry)) + entry
	}
	return append([]string{Short(n.Cluster+"/"+n.Name, nameWidth), n.contact(), heard, Short(orNone(n.Zone), zoneWidth),
		Short(first(n.Addresses, netip.Addr.String), addrWidth), pods,
		fmt.Sprint(n.Endpoints)}, tunnel...)
}

// tunnelEnd returns the address that the tunnel leads to, or only its port if the address is
// already shown.
func (n Node) tunnelEnd() string {
	if at := n.Tunnel.Underlay; len(n.Addresses) > 0 && at.Addr() == n.Addresses[0] {
		return fmt.Sprintf(":%d", at.Port())
	}
	return n.Tunnel.Underlay.String()
}

// carries returns what probes found out about the tunnel, in a few words.
func (t *Tunnel) carries() string {
	switch t.State {
	case "":
		return None
	case "carrying":
		return fmt.Sprintf("%s %.1f ms", OK, t.RTT)
	case "lossy":
		return fmt.Sprintf("%s %.0f %% lost", Warn, 100*t.Loss)
	case "returning":
		return Warn + " " + t.State
	case "narrow":
		return Bad + " small packets"
	case "one-way":
		return Bad + " one way"
	case "silent", "never":
		return Bad + " nothing"
	}
	return t.State
}

// Down returns why the tunnel carries nothing, or no large packets; empty unless that is known.
func (t *Tunnel) Down() string {
	switch t.State {
	case "narrow":
		return "only small packets pass"
	case "one-way":
		return "packets pass in one direction only"
	case "silent":
		return "nothing passes"
	case "never":
		return "no handshake"
	}
	return ""
}

// contact returns the node's state in a few words.
func (n Node) contact() string {
	switch {
	case n.Dead:
		return fmt.Sprintf("%s dead, said by %d", Bad, len(n.Witnesses))
	case n.Contact == "self", n.Contact == "alive":
		return OK + " " + n.Contact
	}
	return Warn + " " + n.Contact
}

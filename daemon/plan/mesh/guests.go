package mesh

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

// Guest is a machine outside every cluster for which this cluster has a pin.
type Guest struct {
	Name string
	Key  key.Public
	// Range are the addresses that it may have, Nodes those of this cluster that accept it (all, if
	// there are none), To what it may call besides the node's own pods.
	Range []netip.Prefix
	Nodes []clustermesh.NodeName
	To    []netip.Prefix
	// Endpoint is its outer UDP address; can be invalid.
	Endpoint netip.AddrPort
}

func (g Guest) equal(h Guest) bool {
	return g.Name == h.Name && g.Key == h.Key && g.Endpoint == h.Endpoint &&
		slices.Equal(g.Range, h.Range) && slices.Equal(g.Nodes, h.Nodes) && slices.Equal(g.To, h.To)
}

// Admitted is a Guest with what this node makes of it.
type Admitted struct {
	Guest
	// Elsewhere is true if other nodes accept it, not this one.
	Elsewhere bool
	// Why is why this node refuses it; empty if it does not.
	Why string
	// Reach is what it may call through this node besides the node's own pods; nil unless it has a tunnel.
	Reach []netip.Prefix
}

// here reports whether the guest has a tunnel to this node.
func (a Admitted) here() bool { return !a.Elsewhere && a.Why == "" }

// admit decides about the guests. What belongs to the clusterset comes before them: a guest that has the key
// or an address of a node, pod, Service or other machine is refused as a whole, unless it had them before
// nodes of other clusters claimed them.
func (m work) admit(s datapath.Sources) (all []Admitted, problems []clustermesh.Problem) {
	taken := m.takenKeys()
	var ranges []landmark // of the guests so far
	for _, g := range m.Guests {
		a := Admitted{Guest: g, Elsewhere: len(g.Nodes) > 0 && !slices.Contains(g.Nodes, m.Self.Node)}
		if !a.Elsewhere {
			var try string
			if a.Why, try = m.refuse(g, s, taken, ranges); a.Why != "" {
				problems = append(problems, pinRefused(g, "range", a.Why+": it has no tunnel to this node", try))
			}
		}
		taken[g.Key] = "peer " + g.Name
		for _, p := range g.Range {
			ranges = append(ranges, landmark{prefix: p, node: clustermesh.Origin{Node: clustermesh.NodeName(g.Name)}})
		}
		if a.here() {
			var more []clustermesh.Problem
			a.Reach, more = m.reach(g)
			problems = append(problems, more...)
		}
		all = append(all, a)
	}
	return all, problems
}

func sorted(ps []netip.Prefix) []netip.Prefix {
	out := slices.Clone(ps)
	slices.SortFunc(out, comparePrefix)
	return slices.Compact(out)
}

// takenKeys returns who has which WireGuard key: a guest that kept its own, or else a node.
func (m work) takenKeys() map[key.Public]string {
	out := map[key.Public]string{}
	for k, name := range m.guestKeys {
		out[k] = "peer " + name
	}
	for r := range m.State.Nodes() {
		if k := r.Content.Node.PublicKey; !k.IsZero() && out[k] == "" {
			out[k] = "node " + r.Origin.String()
		}
	}
	return out
}

// refuse returns why this node cannot accept a guest, and what to do; nothing if it can.
func (m work) refuse(g Guest, s datapath.Sources, taken map[key.Public]string, ranges []landmark) (why, try string) {
	switch holder := taken[g.Key]; {
	case !m.On:
		return "the mesh is off on this node", "set mesh.mode to wireguard, or name other nodes in the pin"
	case len(s.Prefixes) == 0:
		return "this node has no prefix of pods, so nothing would keep it from the rest of the network",
			"give the Node object a podCIDR or set nodePrefixes, or name other nodes in the pin"
	case holder != "" && holder != "peer "+g.Name:
		return "its key is that of " + holder, "make a key of its own on that machine, with wg genkey"
	}
	for _, p := range g.Range {
		if covers := m.clash(g, p, ranges); covers != "" {
			return fmt.Sprintf("its range %s overlaps %s", p, covers), "give it addresses that nothing else in the clusterset or on this machine has"
		}
	}
	return "", ""
}

// clash returns what has addresses of a guest's range; empty if nothing has.
func (m work) clash(g Guest, p netip.Prefix, ranges []landmark) string {
	for _, c := range m.CIDRs {
		if c.Overlaps(p) {
			return fmt.Sprintf("%s, which is for ClusterSetIPs", c)
		}
	}
	for r := range m.State.Nodes() {
		for _, q := range r.Content.Node.Prefixes {
			lost := m.hadGuests[g.Name] && r.Origin.Cluster != m.Self.Cluster && !slices.Contains(m.owned[r.Origin], q.Masked())
			if q.Overlaps(p) && !lost {
				return fmt.Sprintf("%s of node %s", q, r.Origin)
			}
		}
	}
	for _, r := range m.Remotes {
		if r.Range.Overlaps(p) {
			return fmt.Sprintf("%s, which is pinned for the pods of cluster %s", r.Range, r.Cluster)
		}
	}
	for _, l := range m.forbidden.landmarks {
		late := m.hadGuests[g.Name] && l.kind == underlay && l.node.Cluster != m.Self.Cluster
		if l.prefix.Overlaps(p) && !late {
			return l.String()
		}
	}
	for _, l := range ranges {
		if l.prefix.Overlaps(p) {
			return fmt.Sprintf("%s of peer %s", l.prefix, l.node.Node)
		}
	}
	if r := m.forbidden.check(node{}, p); r != nil && !(r.contested && m.hadGuests[g.Name]) {
		return r.covers
	}
	return ""
}

// reach returns what a guest may call. ClusterSetIPs of a range of strait's own are none of it: they
// exist for sockets on nodes, and a packet that is passed on meets no socket.
func (m work) reach(g Guest) (to []netip.Prefix, problems []clustermesh.Problem) {
	for _, p := range sorted(g.To) {
		i := slices.IndexFunc(m.CIDRs, p.Overlaps)
		if i < 0 {
			to = append(to, p)
			continue
		}
		problems = append(problems, pinRefused(g, "to",
			fmt.Sprintf("%s has ClusterSetIPs (%s), which answer only programs on the nodes themselves: no Service holds them, so no kube-proxy serves them to what comes through a tunnel", p, m.CIDRs[i]),
			"let it call pods' addresses, which the DNS names of headless Services give; or set source.kubernetes.clusterSetIPs to derived, and give it the range of Services"))
	}
	return to, problems
}

func pinRefused(g Guest, field, why, try string) clustermesh.Problem {
	return problem.Named("peer", g.Name).Problem(clustermesh.Problem{Code: problem.PeerPinRefused, Field: field, Message: why, Try: try})
}

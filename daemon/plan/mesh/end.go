package mesh

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

// node is what a node publishes about itself, and what is known of it.
type node struct {
	origin clustermesh.Origin
	*clustermesh.Node
	// dead: its machine is. keyProven: it proved that it has the WireGuard key. at is where a dial proved
	// who it is; can be invalid.
	dead, keyProven bool
	at              netip.Addr
}

// nodes returns all nodes of the clusterset, sorted by origin.
func (m Inputs) nodes() (out []node) {
	for r := range m.State.Nodes() {
		out = append(out, m.node(r))
	}
	return out
}

func (m Inputs) node(r clustermesh.Record) node {
	return node{r.Origin, r.Content.Node, m.Dead[r.Origin], r.KeyProven, m.State.Proven.Get(r.Origin).Addr()}
}

// ends returns the nodes that tunnels lead to, with their underlay addresses. A WireGuard key belongs to one
// node of the clusterset, and so does an underlay address with its port: to the one that proved that it has
// it, or else to the one that had it in the last mesh. If there is neither, no node gets it. Every node that
// cannot be an end is a Problem, whichever cluster it is in.
func (m work) ends(nodes []node, owned map[clustermesh.Origin][]netip.Prefix) (map[clustermesh.Origin]netip.AddrPort, []clustermesh.Problem) {
	ends := make(map[clustermesh.Origin]netip.AddrPort, len(nodes))
	keyed, problems := m.keyed(nodes)
	underlays, more := m.underlays(keyed)
	problems = append(problems, more...)
	for i, n := range keyed {
		switch {
		case !underlays[i].IsValid():
		case len(owned[n.origin]) > 0:
			ends[n.origin] = underlays[i]
		case len(n.Prefixes) == 0: // if it has some, it lost each, with a Problem for each
			problems = append(problems, n.noPrefix())
		}
	}
	return ends, problems
}

// keyed returns the nodes that have their WireGuard key to themselves.
func (m work) keyed(nodes []node) (out []node, problems []clustermesh.Problem) {
	byKey := make(contest[key.Public], len(nodes))
	for i := range nodes {
		if n := &nodes[i]; !n.PublicKey.IsZero() { // without a key, the mesh is off there
			byKey.claim(n.PublicKey, standing{node: n.origin, dead: n.dead, proven: n.keyProven, had: m.had.key(n)})
		}
	}
	m.claimKeys(nodes, byKey)
	lost := byKey.lost()
	for k, name := range m.guestKeys {
		if _, is := lost[claimedBy[key.Public]{Guest{Name: name}.origin(), k}]; is {
			delete(m.guestKeys, k)
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if n.PublicKey.IsZero() {
			continue
		}
		if l, is := lost[claimedBy[key.Public]{n.origin, n.PublicKey}]; is {
			problems = append(problems, n.sameKey(l))
			if !l.tied {
				m.rivals.add(l.to, "publicKey", n.origin, "its WireGuard key")
			}
			continue
		}
		out = append(out, *n)
	}
	return out, problems
}

// underlays returns where tunnels to nodes lead: to the first of each one's addresses that it has to itself.
func (m work) underlays(nodes []node) (out []netip.AddrPort, problems []clustermesh.Problem) {
	byAddr := make(contest[netip.AddrPort], len(nodes))
	for i := range nodes {
		n := &nodes[i]
		for j, a := range n.listeners() {
			byAddr.claim(a, standing{node: n.origin, dead: n.dead, proven: n.at == a.Addr(), had: m.had.underlay(n, a), first: j == 0})
		}
	}
	lost := byAddr.lost()
	for _, c := range byAddr {
		for _, s := range c.others {
			m.disputed[s.node], m.disputed[c.first.node] = true, true
		}
	}
	for i := range nodes {
		n := &nodes[i]
		var at netip.AddrPort
		p := n.unreachable()
		for _, a := range n.listeners() {
			l, is := lost[claimedBy[netip.AddrPort]{n.origin, a}]
			if !is {
				at, p = a, nil
				break
			}
			if p == nil {
				p = n.sameUnderlay(a, l)
			}
			if !l.tied {
				m.rivals.add(l.to, "addresses", n.origin, a)
			}
		}
		if p != nil {
			problems = append(problems, *p)
		}
		out = append(out, at)
	}
	return out, problems
}

// listeners returns where the node's WireGuard can be reached, by its own word.
func (n *node) listeners() (out []netip.AddrPort) {
	if n.WireGuardPort == 0 {
		return nil
	}
	for _, a := range n.Addresses {
		if a := netip.AddrPortFrom(a, n.WireGuardPort); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// unreachable returns why no tunnel can lead to the node, whatever others claim; nil if one can.
func (n node) unreachable() *clustermesh.Problem {
	switch {
	case len(n.Addresses) == 0:
		return n.noTunnel("addresses", "it has no address that other machines can reach",
			"give its Node object an address of type InternalIP, or set gossip.advertise there")
	case n.WireGuardPort == 0:
		return n.noTunnel("wireguardPort", "it has a WireGuard key but no port", "set mesh.port there")
	}
	return nil
}

// called is how people call a node or a guest.
func called(o clustermesh.Origin) string {
	if o.Cluster == "" {
		return string(o.Node)
	}
	return o.Ref().String()
}

func (n node) sameKey(l loss) clustermesh.Problem {
	why := fmt.Sprintf("it has the WireGuard key of %s, which keeps it", called(l.to))
	if l.tied {
		why = fmt.Sprintf("it has the same WireGuard key as %s, and it is not known whose it is", called(l.to))
	}
	return *n.noTunnel("publicKey", why, "give each node a key of its own: on a cloned machine remove wireguard.key from the stateDir and restart straitd")
}

func (n node) sameUnderlay(a netip.AddrPort, l loss) *clustermesh.Problem {
	why := fmt.Sprintf("%s is the underlay address of node %s, which keeps it", a, l.to)
	if l.tied {
		why = fmt.Sprintf("node %s has the underlay address %s too, and it is not known whose it is", l.to, a)
	}
	return n.noTunnel("addresses", why, "give each node an address that is its own in the whole clusterset, or mesh.port another number")
}

func (n node) noPrefix() clustermesh.Problem {
	return *n.noTunnel("prefixes", "it has no prefix of pods",
		"give its Node object a podCIDR, or set nodePrefixes there")
}

func (n node) noTunnel(field, why, try string) *clustermesh.Problem {
	p := n.origin.Ref().Problem(clustermesh.Problem{
		Code:  problem.NoTunnel,
		Field: field, Try: try,
		Message: why + ": no tunnel leads to " + n.origin.String(),
	})
	return &p
}

package plan

import (
	"fmt"
	"net/netip"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

// node is what a node says about itself, and whether its machine is dead.
type node struct {
	origin clustermesh.Origin
	*clustermesh.Node
	dead bool
}

// nodes returns all nodes of the clusterset, sorted by origin.
func (m mesh) nodes() (out []node) {
	for r := range m.state.Nodes() {
		out = append(out, node{r.Origin, r.Content.Node, m.dead(r.Origin)})
	}
	return out
}

// ends returns the nodes that tunnels lead to, with their underlay addresses. A WireGuard key
// belongs to one node of the clusterset, and so does an underlay address with its port. The node that
// had them in the last plan keeps them: otherwise a cluster could take another's tunnels by a lower
// name. Where no plan was made before, live nodes come before dead ones, then the lower name wins.
// Every node that cannot be an end is a Problem, whichever cluster it is in.
func (m mesh) ends(nodes []node, owned map[clustermesh.Origin][]netip.Prefix) (map[clustermesh.Origin]netip.AddrPort, []clustermesh.Problem) {
	ends := make(map[clustermesh.Origin]netip.AddrPort, len(nodes))
	keys := make(map[key.Public]clustermesh.Origin, len(nodes))
	underlays := make(map[netip.AddrPort]clustermesh.Origin, len(nodes))
	var problems []clustermesh.Problem
	for _, group := range m.byPrecedence(nodes) {
		for _, n := range group {
			if n.PublicKey.IsZero() { // without a key, the mesh is off there
				continue
			}
			if holder, taken := keys[n.PublicKey]; taken {
				problems = append(problems, n.sameKey(holder))
				continue
			}
			keys[n.PublicKey] = n.origin
			underlay, p := n.underlay()
			if holder, taken := underlays[underlay]; p == nil && taken {
				p = n.sameUnderlay(underlay, holder)
			}
			if p != nil {
				problems = append(problems, *p)
				continue
			}
			underlays[underlay] = n.origin
			switch {
			case len(owned[n.origin]) > 0:
				ends[n.origin] = underlay
			case len(n.Prefixes) == 0: // if it has some, it lost each, with a Problem for each
				problems = append(problems, n.noPrefix())
			}
		}
	}
	return ends, problems
}

// heldEnd is what a node had of the clusterset in the last plan.
type heldEnd struct {
	key      key.Public
	underlay netip.AddrPort
}

// byPrecedence groups nodes by who comes first where they contradict each other: those that had their
// key and underlay address in the last plan, then live ones, then dead ones. A dead node gives up what
// it had to a live one of its own cluster, as a replaced machine, but not to another cluster.
func (m mesh) byPrecedence(nodes []node) [3][]node {
	type claim struct {
		cluster clustermesh.ClusterName
		what    any
	}
	live := map[claim]bool{}
	at := func(n node) netip.AddrPort { a, _ := n.underlay(); return a }
	for _, n := range nodes {
		if !n.dead {
			live[claim{n.origin.Cluster, n.PublicKey}], live[claim{n.origin.Cluster, at(n)}] = true, true
		}
	}
	var out [3][]node
	for _, n := range nodes {
		replaced := n.dead && (live[claim{n.origin.Cluster, n.PublicKey}] || live[claim{n.origin.Cluster, at(n)}])
		had, held := m.held[n.origin]
		i := 1
		switch {
		case held && !replaced && had == heldEnd{n.PublicKey, at(n)}:
			i = 0
		case n.dead:
			i = 2
		}
		out[i] = append(out[i], n)
	}
	return out
}

// underlay returns where a tunnel to the node leads, or why there is none.
func (n node) underlay() (netip.AddrPort, *clustermesh.Problem) {
	switch {
	case len(n.Addresses) == 0:
		return netip.AddrPort{}, n.noTunnel("addresses", "it has no address that other machines can reach",
			"give its Node object an address of type InternalIP, or set gossip.advertise there")
	case n.WireGuardPort == 0:
		return netip.AddrPort{}, n.noTunnel("wireguardPort", "it has a WireGuard key but no port", "set mesh.port there")
	}
	return netip.AddrPortFrom(n.Addresses[0], n.WireGuardPort), nil
}

func (n node) sameKey(holder clustermesh.Origin) clustermesh.Problem {
	return *n.noTunnel("publicKey", fmt.Sprintf("it has the WireGuard key of node %s, which keeps it", holder),
		"give each node a key of its own: on a cloned machine remove wireguard.key from the stateDir and restart straitd")
}

func (n node) sameUnderlay(a netip.AddrPort, holder clustermesh.Origin) *clustermesh.Problem {
	return n.noTunnel("addresses", fmt.Sprintf("%s is the underlay address of node %s, which keeps it", a, holder),
		"give each node an address that is its own in the whole clusterset, or mesh.port another number")
}

func (n node) noPrefix() clustermesh.Problem {
	return *n.noTunnel("prefixes", "it has no prefix of pods",
		"give its Node object a podCIDR, or set nodePrefixes there")
}

func (n node) noTunnel(field, why, try string) *clustermesh.Problem {
	return &clustermesh.Problem{
		Code:   problem.NoTunnel,
		Object: "node " + n.origin.String(), Field: field, Try: try,
		Message: why + ": no tunnel leads to " + n.origin.String(),
	}
}

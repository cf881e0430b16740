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
// belongs to one node of the clusterset, and so does an underlay address with its port. All nodes
// decide on the same owner, so that both ends of a tunnel agree: live nodes come before dead ones,
// then the lower name wins. A node keeps what it has while its daemon restarts. Every node that
// cannot be an end is a Problem, whichever cluster it is in.
func (m mesh) ends(nodes []node, owned map[clustermesh.Origin][]netip.Prefix) (map[clustermesh.Origin]netip.AddrPort, []clustermesh.Problem) {
	ends := make(map[clustermesh.Origin]netip.AddrPort, len(nodes))
	keys := make(map[key.Public]clustermesh.Origin, len(nodes))
	underlays := make(map[netip.AddrPort]clustermesh.Origin, len(nodes))
	var problems []clustermesh.Problem
	for _, dead := range []bool{false, true} {
		for _, n := range nodes {
			if n.dead != dead || n.PublicKey.IsZero() { // without a key, the mesh is off there
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

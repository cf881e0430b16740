package turn

import (
	"cmp"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// Machine is what a node knows about itself besides its Node object.
type Machine struct {
	Origin clustermesh.Origin
	// Advertise is the address that other daemons dial.
	Advertise netip.AddrPort
	// Prefixes are the prefixes of the node's pods in the configuration. Without any, its
	// objects decide.
	Prefixes []netip.Prefix
	// Pods are the addresses of all pods of the node, if the source knows more than those with
	// endpoints.
	Pods []netip.Addr
	// ReadsFiles is true if the objects are files, which have no Pods: then endpoints are the only trace
	// of pods, and root of the machine writes them. Tenants write those of an API server, which give a
	// node no address.
	ReadsFiles bool
	// Follower is true if the machine does not have the root of its cluster.
	Follower bool
	// Version is that of the daemon.
	Version string
	// Canary is clustermesh.Node.Canary.
	Canary int64
	// Relay is used if the Node object says nothing about it.
	Relay clustermesh.RelayUse
	// GossipKeys are fingerprints of the gossip keys in force.
	GossipKeys []string
	// Mesh: there are tunnels. The fields below are only for them.
	Mesh bool
	Key  key.Public
	Port uint16
	// Addresses are those of the machine's devices.
	Addresses []netip.Addr
}

// NodeContent returns what a node publishes about itself: the content of its objects, completed by what
// only the machine knows. Found is false if it has no Node object.
func NodeContent(m Machine, local clustermesh.Local) (c clustermesh.Content, found bool) {
	c, found = local.NodeContent(m.Origin.Node)
	c.GossipKeys = m.GossipKeys
	n := c.Node
	n.Follower, n.Canary = m.Follower, m.Canary
	n.Relay = cmp.Or(n.Relay, m.Relay)
	if clustermesh.CheckText(m.Version, clustermesh.MaxWord) == nil { // it is what the build was given
		n.Version = m.Version
	}
	if len(n.Addresses) == 0 {
		n.Addresses = []netip.Addr{m.Advertise.Addr()}
	}
	n.GossipPort = m.Advertise.Port()
	written := m.Prefixes
	if len(written) == 0 {
		written = local.NodePrefixes[n.Name]
	}
	n.Prefixes = nodePrefixes(written, n.Prefixes, n.Addresses, m.Pods)
	if m.ReadsFiles && len(written) == 0 {
		n.Prefixes = addEndpoints(n.Prefixes, n.Addresses, c.Endpoints)
	}
	if m.Mesh {
		n.PublicKey, n.WireGuardPort = m.Key, m.Port
		giveInside(n, firstInside(m.Addresses, n.Prefixes), m.Origin)
		c.Endpoints = onHost(c.Endpoints, *n)
		n.ClusterIPs = local.NodeClusterIPs[n.Name]
		n.Prefixes = slices.Concat(n.Prefixes, n.ClusterIPs)
	}
	return c, found
}

// onHost marks the endpoints that have an address of the node itself, if it is of the family of
// Inside: package object has left out those that no Pod with hostNetwork bears out. The list stays as it is.
func onHost(es []clustermesh.Endpoint, n clustermesh.Node) []clustermesh.Endpoint {
	cloned := false
	for i, e := range es {
		if !slices.Contains(n.Addresses, e.Addr) || clustermesh.FamilyOf(e.Addr) != clustermesh.FamilyOf(n.Inside) {
			continue
		}
		if !cloned {
			es, cloned = slices.Clone(es), true
		}
		es[i].OnHost = true
	}
	return es
}

// nodePrefixes returns the prefixes that a node answers for: those written down; or else those of
// its Node object, if they contain all its pods; or else its pods' own addresses. The node's own
// addresses are not counted as pods' addresses: pods there use the host's network.
func nodePrefixes(written, object []netip.Prefix, node, pods []netip.Addr) []netip.Prefix {
	if len(written) > 0 {
		return written
	}
	var own []netip.Prefix
	outside := false
	for _, a := range pods {
		if a.IsValid() && !slices.Contains(node, a) {
			own = append(own, netip.PrefixFrom(a, a.BitLen()))
			outside = outside || !contains(object, a)
		}
	}
	if !outside {
		return object
	}
	slices.SortFunc(own, netip.Prefix.Compare)
	return slices.Compact(own)
}

// addEndpoints adds the addresses of the node's endpoints that are in none of its prefixes, such as one
// in a second network. Its pods keep theirs.
func addEndpoints(prefixes []netip.Prefix, node []netip.Addr, es []clustermesh.Endpoint) []netip.Prefix {
	var more []netip.Prefix
	for _, e := range es {
		if e.Addr.IsValid() && !slices.Contains(node, e.Addr) && !contains(prefixes, e.Addr) {
			more = append(more, netip.PrefixFrom(e.Addr, e.Addr.BitLen()))
		}
	}
	slices.SortFunc(more, netip.Prefix.Compare)
	return slices.Concat(prefixes, slices.Compact(more))
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// firstInside finds an address of the machine in one of the prefixes: its own in the pod network,
// such as that of the CNI's bridge. It returns the lowest address in the first prefix that has any;
// invalid if none has.
func firstInside(addrs []netip.Addr, prefixes []netip.Prefix) netip.Addr {
	for _, p := range prefixes {
		var best netip.Addr
		for _, a := range addrs {
			if p.Contains(a) && (!best.IsValid() || a.Less(best)) {
				best = a
			}
		}
		if best.IsValid() {
			return best
		}
	}
	return netip.Addr{}
}

// giveInside sets the address that peers accept packets from for the node itself: its own in its
// pod network, or else one for the tunnel's device.
func giveInside(n *clustermesh.Node, own netip.Addr, o clustermesh.Origin) {
	if n.Inside = own; own.IsValid() {
		return
	}
	like := n.Addresses[0]
	if len(n.Prefixes) > 0 {
		like = n.Prefixes[0].Addr()
	}
	n.Inside = clustermesh.TunnelAddr(o, like.Is6())
	n.Prefixes = append(slices.Clip(n.Prefixes), netip.PrefixFrom(n.Inside, n.Inside.BitLen()))
}

package daemon

import (
	"fmt"
	"net/netip"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/manifest"
)

// nodeContent is what this node publishes: what the source knows, completed by what only the machine does.
func (d *Daemon) nodeContent(local clustermesh.Local) (clustermesh.Content, []clustermesh.Problem) {
	c, found := local.NodeContent(d.self().Node)
	var problems []clustermesh.Problem
	if !found {
		problems = append(problems, clustermesh.Problem{
			Object:  "Node " + d.config.Node,
			Message: "has no Node object in " + d.config.Source.Manifest + ": its zone, addresses and pod CIDRs are unknown, so other clusters cannot reach its pods",
			Try:     "add the object, or set node in the config to the name of the object that is this machine",
		})
	}
	if len(c.Node.Addresses) == 0 {
		c.Node.Addresses = []netip.Addr{d.advertise.Addr()}
	}
	c.Node.GossipPort = d.advertise.Port()
	return c, append(problems, d.kernel.describe(c.Node)...)
}

// advertised is where other nodes dial this one: as configured, else where it binds, else, for a wildcard,
// the first address of its Node object.
func advertised(c Config) (netip.AddrPort, error) {
	if a := addrPort(c.Gossip.Advertise); a.IsValid() {
		return a, nil
	}
	bind := addrPort(c.Gossip.Bind)
	if !bind.Addr().IsUnspecified() {
		return bind, nil
	}
	node, found := manifest.Read(c.Source.Manifest).NodeContent(clustermesh.NodeName(c.Node))
	if !found || len(node.Node.Addresses) == 0 {
		return bind, fmt.Errorf("gossip.advertise: is needed, since gossip.bind is %s and no Node %s with an address is in %s",
			bind, c.Node, c.Source.Manifest)
	}
	return netip.AddrPortFrom(node.Node.Addresses[0], bind.Port()), nil
}

// insideProblem reports that nodes of other clusters would not accept this node's own packets.
func insideProblem(n clustermesh.Node) clustermesh.Problem {
	return clustermesh.Problem{
		Object: "node " + string(n.Name), Field: "spec.podCIDRs",
		Message: fmt.Sprintf("this machine has no address inside %v: its own and its host-network pods' calls to pods of other clusters leave with a source address that they do not accept", n.Prefixes),
		Try:     "give the machine an address of the pod CIDR, as bridge CNIs do",
		Warning: true,
	}
}

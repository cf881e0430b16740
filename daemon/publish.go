package daemon

import (
	"fmt"
	"net/netip"
	"slices"

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
			Message: "has no Node object in " + d.config.Source.where() + ": its zone, addresses and pod CIDRs are unknown, so other clusters cannot reach its pods",
			Try:     "add the object, or set node in the config to the name of the object that is this machine",
		})
	}
	if len(c.Node.Addresses) == 0 {
		c.Node.Addresses = []netip.Addr{d.who.Advertise.Addr()}
	}
	c.Node.GossipPort = d.who.Advertise.Port()
	c.Node.Prefixes = nodePrefixes(writtenPrefixes(d.config, local), c.Node.Prefixes, c.Node.Addresses, d.pods(c.Endpoints))
	return c, append(problems, d.kernel.describe(d.self().Origin(), c.Node)...)
}

// pods are the addresses of this node's pods: all of them if the source knows, else those with endpoints.
func (d *Daemon) pods(endpoints []clustermesh.Endpoint) (out []netip.Addr) {
	if d.kube != nil {
		out = slices.Clone(d.kube.source.Pods().Addresses)
	}
	for _, e := range endpoints {
		out = append(out, e.Addr)
	}
	return out
}

// fixedAdvertise is where other nodes dial this one by the config alone: as configured, else where it binds;
// invalid for a wildcard.
func fixedAdvertise(c Config) netip.AddrPort {
	if a := addrPort(c.Gossip.Advertise); a.IsValid() {
		return a
	}
	if bind := addrPort(c.Gossip.Bind); !bind.Addr().IsUnspecified() {
		return bind
	}
	return netip.AddrPort{}
}

// advertised is where other nodes dial this one, for a wildcard the first address of its Node object.
func advertised(c Config) (netip.AddrPort, error) {
	if a := fixedAdvertise(c); a.IsValid() {
		return a, nil
	}
	bind := addrPort(c.Gossip.Bind)
	node, found := manifest.Read(c.Source.Manifest).NodeContent(clustermesh.NodeName(c.Node))
	if !found || len(node.Node.Addresses) == 0 {
		return bind, fmt.Errorf("gossip.advertise: is needed, since gossip.bind is %s and no Node %s with an address is in %s",
			bind, c.Node, c.Source.Manifest)
	}
	return netip.AddrPortFrom(node.Node.Addresses[0], bind.Port()), nil
}

// masqueradeProblem reports a kernel that cannot keep pods' addresses. Where no CNI masquerades it harms nobody.
func masqueradeProblem(err error) clustermesh.Problem {
	return clustermesh.Problem{
		Object:  "masquerade",
		Message: "pods' calls to other clusters fail if the CNI masquerades them, since strait cannot exempt them: " + err.Error(),
		Try:     "load the kernel modules, or turn masquerading off in the CNI",
		Warning: true,
	}
}

package daemon

import (
	"fmt"
	"net/netip"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/manifest"
	"strait.io/strait/daemon/turn"
)

// record is what this node says of itself; nil while that is unknown, so that the last record stays in force.
func (d *Daemon) record(local clustermesh.Local, sourced bool) (*clustermesh.Content, []clustermesh.Problem) {
	if !sourced {
		return nil, nil
	}
	m, err := d.machine()
	if err != nil {
		return nil, []clustermesh.Problem{{Object: "node " + d.config.Node, Message: "read own addresses: " + err.Error()}}
	}
	c, found := turn.NodeContent(m, local)
	if found {
		return &c, nil
	}
	return &c, []clustermesh.Problem{{
		Object:  "Node " + d.config.Node,
		Message: "has no Node object in " + d.config.Source.where() + ": its zone, addresses and pod CIDRs are unknown, so other clusters cannot reach its pods",
		Try:     "add the object, or set node in the config to the name of the object that is this machine",
	}}
}

// machine is what this node knows of itself besides its objects.
func (d *Daemon) machine() (turn.Machine, error) {
	m := turn.Machine{Origin: d.self().Origin(), Advertise: d.who.Advertise, Prefixes: d.config.NodePrefixes}
	if d.kube != nil {
		m.Pods = d.kube.source.Pods().Addresses
	}
	if !d.config.Mesh.on() {
		return m, nil
	}
	m.Mesh, m.Key, m.Port = true, d.kernel.publicKey, d.config.Mesh.Port
	var err error
	m.Addresses, err = d.kernel.router.Addresses()
	return m, err
}

// fixedAdvertise is where other nodes dial this one by the config alone: as configured, else where it binds;
// invalid for a wildcard.
func fixedAdvertise(c Config) netip.AddrPort {
	if a := c.Gossip.Advertise; a.IsValid() {
		return a
	}
	if bind := c.Gossip.Bind; !bind.Addr().IsUnspecified() {
		return bind
	}
	return netip.AddrPort{}
}

// advertised is where other nodes dial this one, for a wildcard the first address of its Node object.
func advertised(c Config) (netip.AddrPort, error) {
	if a := fixedAdvertise(c); a.IsValid() {
		return a, nil
	}
	bind := c.Gossip.Bind
	node, found := manifest.Read(c.Source.Manifest).NodeContent(clustermesh.NodeName(c.Node))
	if !found || len(node.Node.Addresses) == 0 {
		return bind, fmt.Errorf("gossip.advertise: is needed, since gossip.bind is %s and no Node %s with an address is in %s",
			bind, c.Node, c.Source.Manifest)
	}
	return netip.AddrPortFrom(node.Node.Addresses[0], bind.Port()), nil
}

package daemon

import (
	"fmt"
	"net/netip"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/manifest"
	"strait.io/strait/daemon/turn"
	"strait.io/strait/internal/problem"
)

// record returns what this node publishes about itself. It is nil while that is unknown, so that
// the last record stays in force.
func (d *Daemon) record(local clustermesh.Local, sourced bool) (*clustermesh.Content, []clustermesh.Problem) {
	if !sourced {
		return nil, nil
	}
	m, err := d.machine()
	if err != nil {
		return nil, []clustermesh.Problem{addressesUnknown(d.config.Node, err)}
	}
	c, found := turn.NodeContent(m, local)
	if found {
		return &c, nil
	}
	return &c, []clustermesh.Problem{problem.Object("Node", "", d.config.Node).Problem(clustermesh.Problem{
		Code:    problem.NodeMissing,
		Message: "has no Node object in " + d.config.Source.where() + ": its zone, addresses and pod CIDRs are unknown, so other clusters cannot reach its pods",
		Try:     "add the object, or set node in the config to the name of the object that is this machine",
	})}
}

func addressesUnknown(node string, err error) clustermesh.Problem {
	return problem.Named("node", node).Problem(clustermesh.Problem{Code: problem.OwnAddressesUnknown, Message: "read own addresses: " + err.Error()})
}

// machine returns what this node knows about itself besides its objects.
func (d *Daemon) machine() (turn.Machine, error) {
	m := turn.Machine{
		Origin: d.self().Origin(), Advertise: d.who.Advertise, Prefixes: d.config.NodePrefixes,
		GossipKeys: d.files.keys.Get().Fingerprints(), Follower: !d.mayLead(), ReadsFiles: !d.kube.present(),
		Pods: d.kube.pods().Addresses, Version: d.build.Version, Canary: d.canary(), Relay: d.config.Gossip.relay(),
	}
	if !d.config.Mesh.on() {
		return m, nil
	}
	m.Mesh, m.Key, m.Port = true, d.kernel.publicKey, d.config.Mesh.Port
	var err error
	m.Addresses, err = d.kernel.router.Addresses()
	return m, err
}

// relay returns what gossip.relay says.
func (c GossipConfig) relay() clustermesh.RelayUse {
	use, _ := clustermesh.ParseRelayUse(c.Relay) // validate has checked it
	return use
}

// fixedAdvertise returns the address that other nodes dial, if the config alone determines it:
// gossip.advertise, or else gossip.bind. It is invalid if that is a wildcard.
func fixedAdvertise(c Config) netip.AddrPort {
	if a := c.Gossip.Advertise; a.IsValid() {
		return a
	}
	if bind := c.Gossip.Bind; !bind.Addr().IsUnspecified() {
		return bind
	}
	return netip.AddrPort{}
}

// advertised returns the address that other nodes dial: fixedAdvertise, or for a wildcard the first
// address of the node's Node object.
func advertised(c Config) (netip.AddrPort, error) {
	if a := fixedAdvertise(c); a.IsValid() {
		return a, nil
	}
	bind := c.Gossip.Bind
	node, found := manifest.Read(c.Source.Manifest, clustermesh.ClusterName(c.Cluster)).NodeContent(clustermesh.NodeName(c.Node))
	if !found || len(node.Node.Addresses) == 0 {
		return bind, fmt.Errorf("gossip.advertise: is required: gossip.bind is %s, and no Node %s with an address is in %s",
			bind, c.Node, c.Source.Manifest)
	}
	return netip.AddrPortFrom(node.Node.Addresses[0], bind.Port()), nil
}

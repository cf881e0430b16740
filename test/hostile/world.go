package hostile

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/l4"
)

// The clusters: what is attacked is seen from west, east is a third one, and evil is the one whose root an
// attacker can have. Their machines share a network, so that each could claim the others' addresses.
const (
	west = clustermesh.ClusterName("west")
	east = clustermesh.ClusterName("east")
	evil = clustermesh.ClusterName("aevil") // sorts before the others
)

var (
	clusters = []clustermesh.ClusterName{west, east, evil}
	// began is when everything is stated. The clock stands still.
	began    = time.Unix(1_800_000_000, 0)
	machines = netip.MustParsePrefix("192.0.2.0/24")
	setIPs   = netip.MustParsePrefix("241.0.0.0/8")
	// entryIPs are the ClusterIPs to which a node of east is the entry.
	entryIPs = netip.MustParsePrefix("10.102.0.0/16")
)

// quota is that of evil.
var quota = authority.Quota{Nodes: 8, Endpoints: 6, Exports: 3}

// world are the honest clusters. It is never changed once made.
type world struct {
	pins  authority.Pins
	self  authority.Self
	roots map[clustermesh.ClusterName]authority.PrivateKey
	nodes map[clustermesh.Origin]*machine
	// state is what west knows without an attack, and base what its node n1 plans of that.
	state clustermesh.State
	base  plan.Result
	// others are the nodes of a town.
	others []authority.Holder
}

// machine is a node with all that proves it.
type machine struct {
	holder    authority.Holder // with what is stated of it
	key       authority.PrivateKey
	stated    authority.Statement
	statement []byte
	record    clustermesh.Record
	raw, seal []byte
}

func keyOf(text string) authority.PrivateKey {
	return authority.PrivateKey(sha256.Sum256([]byte(text)))
}

func prefix(format string, args ...any) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf(format, args...))
}

func addr(format string, args ...any) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf(format, args...))
}

// number is that of a cluster, in its addresses.
func number(c clustermesh.ClusterName) int { return slices.Index(clusters, c) + 1 }

// origin is node n of a cluster.
func origin(c clustermesh.ClusterName, n int) clustermesh.Origin {
	return clustermesh.Origin{Cluster: c, Node: clustermesh.NodeName(fmt.Sprintf("n%d", n))}
}

// holder is what the objects of a cluster say of its node n.
func holder(c clustermesh.ClusterName, n int) authority.Holder {
	return authority.Holder{
		Name: origin(c, n).Node, Locality: clustermesh.Locality{Region: string(c), Zone: string(c) + "-1"},
		Addresses: []netip.Addr{addr("192.0.2.%d", 20*number(c)+n)}, PodCIDRs: []netip.Prefix{prefix("10.%d.%d.0/24", number(c), n)},
	}
}

// wanted is what a node wants to be stated if it is honest.
func wanted(c clustermesh.ClusterName, h authority.Holder) authority.Statement {
	s := authority.Statement{
		Cluster: c, Node: h.Name, Key: keyOf(string(c) + string(h.Name)).Public(),
		Addresses: h.Addresses, Prefixes: slices.Concat(podsOf(h), h.Entry), Locality: h.Locality,
	}
	k := tunnels(s.Origin())
	s.WireGuard = k.Public()
	if !unproven(c, h.Name) {
		s.Proof = proofOf(s, k)
	}
	return s
}

// unproven reports whether a node has a daemon of the version before, which proves no key.
func unproven(c clustermesh.ClusterName, n clustermesh.NodeName) bool { return c == east && n == "n4" }

func podsOf(h authority.Holder) []netip.Prefix {
	if len(h.Annotated) > 0 {
		return h.Annotated
	}
	return h.PodCIDRs
}

// honest returns the world.
var honest = sync.OnceValues(func() (*world, error) {
	w := &world{
		pins: authority.Pins{}, roots: map[clustermesh.ClusterName]authority.PrivateKey{}, nodes: map[clustermesh.Origin]*machine{},
		self:  authority.Self{Cluster: west, Own: []netip.Prefix{prefix("10.1.0.0/16"), prefix("10.101.0.0/16"), setIPs}, Machines: map[netip.Addr]bool{}},
		state: clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}},
	}
	for _, c := range clusters {
		w.roots[c] = keyOf("root of " + string(c))
		w.pins[c] = authority.Pin{
			Cluster: c, Roots: []authority.PublicKey{w.roots[c].Public()}, Nodes: []netip.Prefix{machines},
			Pods:    []netip.Prefix{prefix("10.%d.0.0/16", number(c)), prefix("10.%d.0.0/16", 100+number(c))},
			Regions: []string{string(c)}, Namespaces: []string{"shop-*"},
		}
	}
	pin := w.pins[east] // has a machine in the network of its pods
	pin.Nodes = append(pin.Nodes, prefix("10.2.8.0/24"))
	w.pins[east] = pin
	pin = w.pins[evil]
	pin.Namespaces, pin.Quota = []string{"evil-*"}, quota
	w.pins[evil] = pin
	for _, c := range clusters {
		for n := 1; n <= 3; n++ {
			h := holder(c, n)
			if c == east && n == 3 { // the entry to ClusterIPs
				h.Entry = []netip.Prefix{entryIPs}
			}
			if err := w.add(c, h); err != nil {
				return nil, err
			}
		}
		w.state.Records = w.state.Records.With(clustermesh.Origin{Cluster: c}, w.leads(c))
	}
	for n := 1; n <= 3; n++ {
		w.self.Machines[holder(west, n).Addresses[0]] = true
	}
	var err error
	if w.others, err = w.town(); err != nil {
		return nil, err
	}
	w.base, _ = plan.Plan(w.inputs(w.state), plan.Past{})
	if p := w.base.Problems; len(p) > 0 {
		return nil, fmt.Errorf("honest clusters have problems: %v", p)
	}
	return w, nil
})

// known is what the signer of a cluster knows when it states something of a node.
func (w *world) known(c clustermesh.ClusterName, about authority.Holder, others ...authority.Holder) authority.Known {
	k := authority.Known{Node: about, Others: others, Pins: w.pins, ClusterSetIPs: []netip.Prefix{setIPs}}
	for o, m := range w.nodes {
		if o.Cluster != c {
			k.Foreign = append(k.Foreign, m.stated)
		}
	}
	return k
}

// add makes an honest node.
func (w *world) add(c clustermesh.ClusterName, h authority.Holder) (err error) {
	m := &machine{key: keyOf(string(c) + string(h.Name))}
	var left []clustermesh.Problem
	if m.stated, left = authority.Certify(wanted(c, h), w.known(c, h), began); len(left) > 0 {
		return fmt.Errorf("an honest node is not stated: %v", left)
	}
	h.Stated = m.stated
	m.holder = h
	if m.statement, err = m.stated.Sign(w.roots[c]); err != nil {
		return err
	}
	e, err := replica.NewEntry(clustermesh.Record{Origin: m.stated.Origin(), Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: w.content(c, m.stated)})
	if err != nil {
		return err
	}
	if m.raw, err = e.Bytes(); err != nil {
		return err
	}
	m.record, m.seal = e.Record, authority.Seal(m.key, m.raw, m.statement)
	w.nodes[m.stated.Origin()] = m
	s, err := authority.Verify(w.pins, e.Record.Origin, m.raw, m.seal, w.open)
	if err != nil {
		return err
	}
	w.state.Records = w.state.Records.With(e.Record.Origin, authority.Admit(w.self, w.pins[c], s, e.Record))
	w.state.Contacts = w.state.Contacts.With(e.Record.Origin, clustermesh.Alive)
	return nil
}

func (w *world) open(b []byte) (authority.Statement, error) {
	return authority.OpenStatement(b, w.pins)
}

// services are those that nodes of a cluster have a pod of.
func services(c clustermesh.ClusterName) []clustermesh.ServiceName {
	switch c {
	case west:
		return []clustermesh.ServiceName{{Namespace: "shop-1", Name: "both"}, {Namespace: "own", Name: "db"}}
	case east:
		return []clustermesh.ServiceName{{Namespace: "shop-1", Name: "both"}, {Namespace: "shop-1", Name: "remote"}}
	}
	return []clustermesh.ServiceName{{Namespace: "evil-1", Name: "bait"}}
}

var web = clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 80}

// content is what an honest node says.
func (w *world) content(c clustermesh.ClusterName, s authority.Statement) clustermesh.Content {
	inside := s.Prefixes[0].Addr().Next()
	out := clustermesh.Content{Node: &clustermesh.Node{
		Name: s.Node, Locality: s.Locality, Addresses: s.Addresses, Prefixes: s.Prefixes, Inside: inside,
		ClusterIPs: s.Prefixes[1:], PublicKey: s.WireGuard, WireGuardPort: 7000, GossipPort: 7946,
	}}
	for i, name := range services(c) {
		a := inside
		for range i + 1 {
			a = a.Next()
		}
		out.Endpoints = append(out.Endpoints, clustermesh.Endpoint{
			Service: name, Addr: a, Node: s.Node, Zone: s.Locality.Zone, Pod: name.Name,
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Ready: true, Serving: true,
		})
	}
	return out
}

// leads is what an honest leader of a cluster says.
func (w *world) leads(c clustermesh.ClusterName) clustermesh.Record {
	r := clustermesh.Record{Origin: clustermesh.Origin{Cluster: c}, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}}
	for i, name := range services(c) {
		r.Content.Exports = append(r.Content.Exports, clustermesh.Export{
			Service: name, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{web}, Created: int64(1000 + i),
			Families: []clustermesh.Family{clustermesh.IPv4}, FamiliesDeclared: true,
		})
	}
	for n := 1; n <= 3; n++ {
		r.Content.Nodes = append(r.Content.Nodes, origin(c, n).Node)
	}
	return authority.Admit(w.self, w.pins[c], authority.Statement{}, r)
}

// inputs are what node n1 of west plans from.
func (w *world) inputs(s clustermesh.State) plan.Inputs {
	n := w.state.Records.Get(origin(west, 1)).Content.Node
	return plan.Inputs{
		State: s, Self: plan.Self{Cluster: west, Node: "n1"}, Config: plan.Config{CIDRs: []netip.Prefix{setIPs}, Mesh: true},
		Host: plan.Host{Addrs: []netip.Addr{n.Addresses[0], n.Inside}, Connected: []netip.Prefix{n.Prefixes[0]}},
	}
}

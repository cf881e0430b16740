package main

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
	"strait.io/strait/test/hostile"
)

// honest is a cluster with nodes that sign, as another cluster sees it.
type honest struct {
	pins  authority.Pins
	self  authority.Self
	root  authority.PrivateKey
	nodes []signed
}

// signed is a node's record with all that proves it.
type signed struct {
	key       authority.PrivateKey
	record    clustermesh.Record
	raw, seal []byte
	statement []byte
	stated    authority.Statement
}

func keyOf(text string) authority.PrivateKey {
	return authority.PrivateKey(sha256.Sum256([]byte(text)))
}

// newHonest makes a cluster of nodes, each with ten endpoints.
func newHonest(nodes int) (*honest, error) {
	h := &honest{root: keyOf("root"), pins: authority.Pins{}, self: authority.Self{Cluster: "west", Own: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9"), netip.MustParsePrefix("10.96.0.0/12")}}}
	h.pins["east"] = authority.Pin{
		Cluster: "east", Roots: []authority.PublicKey{h.root.Public()}, Namespaces: []string{"shop-*"},
		Pods: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/10")}, Nodes: []netip.Prefix{netip.MustParsePrefix("192.0.0.0/16")},
	}
	west := keyOf("west")
	h.pins["west"] = authority.Pin{Cluster: "west", Roots: []authority.PublicKey{west.Public()}}
	for i := range nodes {
		n, err := h.node(i)
		if err != nil {
			return nil, err
		}
		h.nodes = append(h.nodes, n)
	}
	return h, nil
}

func (h *honest) node(i int) (n signed, err error) {
	name := clustermesh.NodeName(fmt.Sprintf("node-%05d", i))
	n.key = keyOf(string(name))
	pods := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
	addr := netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})
	now := time.Now()
	n.stated = authority.Statement{
		Cluster: "east", Node: name, Key: n.key.Public(), Addresses: []netip.Addr{addr}, Prefixes: []netip.Prefix{pods},
		Locality: clustermesh.Locality{Region: "eu", Zone: "eu-1"}, Serial: uint64(now.UnixNano()), NotBefore: now.Unix(), NotAfter: now.Add(authority.Validity).Unix(),
	}
	tunnels := key.Private(keyOf("tunnels of " + string(name)))
	n.stated.WireGuard = tunnels.Public()
	proof, err := authority.ProveKey(rand.Reader, n.stated.Origin(), n.stated.Key, tunnels)
	if err != nil {
		return n, err
	}
	n.stated = n.stated.WithProof(proof)
	if n.statement, err = n.stated.Sign(h.root); err != nil {
		return n, err
	}
	c := clustermesh.Content{Node: &clustermesh.Node{Name: name, Locality: n.stated.Locality, Addresses: n.stated.Addresses, Prefixes: n.stated.Prefixes, PublicKey: n.stated.WireGuard, GossipPort: 7946}}
	for e := range 10 {
		c.Endpoints = append(c.Endpoints, clustermesh.Endpoint{
			Service: clustermesh.ServiceName{Namespace: "shop-1", Name: fmt.Sprintf("service-%d", e)}, Addr: pods.Addr().Next(), Node: name, Zone: "eu-1",
			Pod: fmt.Sprintf("service-%d-6d4cf56db6-x%04d", e, i), Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Ready: true, Serving: true,
		})
	}
	e, err := replica.NewEntry(clustermesh.Record{Origin: n.stated.Origin(), Stamp: clustermesh.Stamp{Epoch: n.stated.Serial, Version: 1}, Content: c})
	if err != nil {
		return n, err
	}
	n.record = e.Record
	if n.raw, err = e.Bytes(); err == nil {
		n.seal = authority.Seal(n.key, n.raw, n.statement)
	}
	return n, err
}

func (h *honest) open(b []byte) (authority.Statement, error) {
	return authority.OpenStatement(b, h.pins)
}

// measureAuthority measures what it costs to sign records and to judge them, and tries to break what they
// promise.
func measureAuthority(b *bench) error {
	const nodes = 1000
	h, err := newHonest(nodes)
	if err != nil {
		return err
	}
	var sign, verify, admit, newcomer []float64
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / nodes }
	for range b.size.rounds {
		var failed error
		start := time.Now()
		for _, n := range h.nodes {
			authority.Seal(n.key, n.raw, n.statement)
		}
		sign = append(sign, us(time.Since(start)))
		start = time.Now()
		for _, n := range h.nodes {
			_, err := authority.Verify(h.pins, n.record.Origin, n.raw, n.seal, func([]byte) (authority.Statement, error) { return n.stated, nil })
			failed = errors.Join(failed, err)
		}
		verify = append(verify, us(time.Since(start)))
		start = time.Now()
		for _, n := range h.nodes {
			if got := authority.Admit(h.self, h.pins["east"], n.stated, n.record); len(got.Problems) > 0 {
				failed = errors.Join(failed, fmt.Errorf("an honest record has problems: %v", got.Problems))
			}
		}
		admit = append(admit, us(time.Since(start)))
		start = time.Now()
		for _, n := range h.nodes {
			s, err := authority.Verify(h.pins, n.record.Origin, n.raw, n.seal, h.open)
			failed = errors.Join(failed, err)
			if !authority.Admit(h.self, h.pins["east"], s, n.record).KeyProven {
				failed = errors.Join(failed, fmt.Errorf("the key of node %s is not proven", n.stated.Node))
			}
		}
		newcomer = append(newcomer, ms(time.Since(start)))
		if failed != nil {
			return failed
		}
	}
	broken, err := hostile.Run(13, b.size.forged, 4)
	return errors.Join(
		err,
		b.setRounds("sign_us", sign),
		b.setRounds("verify_us", verify),
		b.setRounds("admit_us_per_record", admit),
		b.setRounds("newcomer_1000_nodes_verify_ms", newcomer),
		b.setRounds("record_bytes", []float64{float64(len(h.nodes[0].raw))}),
		b.setRounds("seal_bytes", []float64{float64(len(h.nodes[0].seal))}),
		b.setRounds("forged_checked", []float64{float64(b.size.forged)}),
		b.setRounds("forged_accepted", []float64{float64(broken)}),
	)
}

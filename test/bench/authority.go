package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/l4"
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
	if n.statement, err = n.stated.Sign(h.root); err != nil {
		return n, err
	}
	c := clustermesh.Content{Node: &clustermesh.Node{Name: name, Locality: n.stated.Locality, Addresses: n.stated.Addresses, Prefixes: n.stated.Prefixes, GossipPort: 7946}}
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

// measureAuthority measures what it costs to sign records and to judge them, and tries to have forged
// ones accepted.
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
			authority.Admit(h.self, h.pins["east"], s, n.record)
		}
		newcomer = append(newcomer, ms(time.Since(start)))
		if failed != nil {
			return failed
		}
	}
	accepted := h.attack(b.size.forged)
	return errors.Join(
		b.setRounds("sign_us", sign),
		b.setRounds("verify_us", verify),
		b.setRounds("admit_us_per_record", admit),
		b.setRounds("newcomer_1000_nodes_verify_ms", newcomer),
		b.setRounds("record_bytes", []float64{float64(len(h.nodes[0].raw))}),
		b.setRounds("seal_bytes", []float64{float64(len(h.nodes[0].seal))}),
		b.setRounds("forged_checked", []float64{float64(b.size.forged)}),
		b.setRounds("forged_accepted", []float64{float64(accepted)}),
	)
}

// attack tries forged, foreign, replayed and out-of-authority records, and returns how many of them
// put something in force that their origin may not say.
func (h *honest) attack(n int) int64 {
	var accepted atomic.Int64
	var workers sync.WaitGroup
	const parallel = 4
	for w := range parallel {
		workers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 13))
			for range n / parallel {
				if !h.refused(rng) {
					accepted.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return accepted.Load()
}

// refused draws an attack, and reports whether nothing of it is in force.
func (h *honest) refused(rng *rand.Rand) bool {
	n, other := h.nodes[rng.IntN(len(h.nodes))], h.nodes[rng.IntN(len(h.nodes))]
	for other.record.Origin == n.record.Origin {
		other = h.nodes[rng.IntN(len(h.nodes))]
	}
	flip := func(b []byte) []byte {
		b = slices.Clone(b)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		return b
	}
	origin, raw, proof := n.record.Origin, n.raw, n.seal
	switch rng.IntN(8) {
	case 0:
		raw = flip(raw)
	case 1:
		proof = flip(proof)
		if s, err := authority.Verify(h.pins, origin, raw, proof, h.open); err == nil {
			return s.SaysAs(n.stated) // nothing that counts was changed
		}
		return true
	case 2: // the seal of another node
		proof = other.seal
	case 3: // another node in this one's name, with both statements
		proof = authority.Seal(other.key, raw, [][]byte{n.statement, other.statement}[rng.IntN(2)])
	case 4: // a node in its cluster's name
		origin = clustermesh.Origin{Cluster: "east"}
		proof = authority.Seal(n.key, raw, n.statement)
	case 5: // a cluster that is not pinned, or another that is
		origin.Cluster = []clustermesh.ClusterName{"mallory", "west"}[rng.IntN(2)]
		proof = authority.Seal(h.root, raw, n.statement)
	case 6: // nothing
		proof = nil
	case 7:
		return h.contained(rng, n)
	}
	_, err := authority.Verify(h.pins, origin, raw, proof, h.open)
	return err != nil
}

// contained has a cluster that was taken over sign whatever it likes. It reports whether all that is
// in force is inside its pin.
func (h *honest) contained(rng *rand.Rand, n signed) bool {
	any4 := func() netip.Addr {
		return netip.AddrFrom4([4]byte{[]byte{10, 10, 192, 127, 169, 8, 224}[rng.IntN(7)], byte(rng.IntN(256)), byte(rng.IntN(256)), byte(rng.IntN(256))})
	}
	s, r := n.stated, n.record
	s.Prefixes = append(slices.Clone(s.Prefixes), netip.PrefixFrom(any4(), 8+rng.IntN(25)).Masked())
	s.Addresses = append(slices.Clone(s.Addresses), any4())
	node := *r.Content.Node
	node.Prefixes, node.Addresses = append(slices.Clone(s.Prefixes), netip.PrefixFrom(any4(), 8+rng.IntN(25)).Masked()), append(slices.Clone(s.Addresses), any4())
	r.Content.Node = &node
	r.Content.Endpoints = slices.Clone(r.Content.Endpoints)
	for i := range r.Content.Endpoints {
		e := &r.Content.Endpoints[i]
		if e.Addr = any4(); rng.IntN(3) == 0 {
			e.Service.Namespace = "kube-system"
		}
	}
	pin := h.pins["east"]
	got := authority.Admit(h.self, pin, s, r).Content
	in := func(ranges []netip.Prefix, a netip.Addr) bool {
		return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	for _, p := range got.Node.Prefixes {
		within := slices.ContainsFunc(pin.Pods, func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) })
		if !within || slices.ContainsFunc(h.self.Own, p.Overlaps) {
			return false
		}
	}
	for _, a := range got.Node.Addresses {
		if !in(pin.Nodes, a) || in(h.self.Own, a) {
			return false
		}
	}
	return !slices.ContainsFunc(got.Endpoints, func(e clustermesh.Endpoint) bool {
		return !in(pin.Pods, e.Addr) && !in(pin.Nodes, e.Addr) || in(h.self.Own, e.Addr) || e.Service.Namespace != "shop-1"
	})
}

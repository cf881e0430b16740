package replica

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// flight is an encoded message on its way between two nodes of a sim.
type flight struct {
	from, to int
	bytes    []byte
}

// sim is some replicas and a network that does what it is told: lose, repeat, reorder, part.
type sim struct {
	t        testing.TB
	rng      *rand.Rand
	nodes    []*Replica
	saved    [][]Entry
	peers    []Peer
	side     []int // nodes reach each other if they are on one side
	down     map[int]bool
	flying   []flight
	problems []clustermesh.Problem
	sent     int
	topology topology.Topology
	bothWays bool // streams are whole
	clock    uint64
	seen     []map[clustermesh.Origin]Version // the largest version that a node ever held, per life
}

func simOrigin(i int) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(fmt.Sprintf("c%d", i%3)), Node: clustermesh.NodeName(fmt.Sprintf("n%d", i))}
}

func newSim(t testing.TB, origins []clustermesh.Origin, seed uint64) *sim {
	s := &sim{t: t, rng: rand.New(rand.NewPCG(seed, 1)), peers: origins, clock: 1000, down: map[int]bool{}}
	s.side = make([]int, len(origins))
	s.saved = make([][]Entry, len(origins))
	s.nodes = make([]*Replica, len(origins))
	s.seen = make([]map[clustermesh.Origin]Version, len(origins))
	for i := range origins {
		s.start(i, nil, s.clock)
	}
	return s
}

func (s *sim) start(i int, held []Entry, epoch uint64) {
	s.nodes[i] = New(Config{Self: s.peers[i], Epoch: epoch, Topology: s.topology}, held)
	s.seen[i] = map[clustermesh.Origin]Version{}
	s.flying = slices.DeleteFunc(s.flying, func(f flight) bool { return f.to == i || f.from == i })
	s.do(i, s.nodes[i].SetMembers(topology.View{Members: s.peers}))
}

// do takes an Output of node i: encodes what it sends, and checks that nothing was lost or went back.
func (s *sim) do(i int, out Output) {
	s.problems = append(s.problems, out.Problems...)
	for _, p := range s.peers { // in the same order each time
		if out.Neighbours[p] {
			s.do(i, s.nodes[i].Connected(p, s.bothWays))
		}
	}
	for _, e := range out.Send {
		b, err := Encode(e.Message)
		if err != nil {
			s.t.Fatalf("encode %T: %v", e.Message, err)
		}
		for to, p := range s.peers {
			if p == e.To && to != i {
				s.flying = append(s.flying, flight{i, to, b})
				s.sent++
			}
		}
	}
	have := s.nodes[i].entries
	for o, v := range s.seen[i] {
		e, ok := have[o]
		if !ok && s.nodes[i].left(o) {
			delete(s.seen[i], o)
		} else if !ok || e.version.Compare(v) < 0 {
			s.t.Fatalf("node %d: record of %s went from %v back to %v (held: %v)", i, o, v, e.version, ok)
		}
	}
	for o, e := range have {
		s.seen[i][o] = e.version
		if is := s.nodes[i].unlisted(o); s.nodes[i].strays[o] != is {
			s.t.Fatalf("node %d: %s is noted as missing in its cluster's list: %v, and is: %v", i, o, !is, is)
		}
	}
	if strays := s.nodes[i].strays; len(strays) > len(have) {
		s.t.Fatalf("node %d: %v are noted as missing in their clusters' lists, and no more is held", i, strays)
	}
}

func (s *sim) deliver(n int, drop, repeat bool) {
	f := s.flying[n]
	if !repeat {
		s.flying = slices.Delete(s.flying, n, n+1)
	}
	if drop || s.down[f.to] || s.side[f.from] != s.side[f.to] {
		return
	}
	m, err := Decode(f.bytes)
	if err != nil {
		s.t.Fatalf("decode: %v", err)
	}
	s.do(f.to, s.nodes[f.to].Receive(s.peers[f.from], m))
}

// settle heals the network and lets ticks and messages go on until all is quiet.
func (s *sim) settle(ticks int) {
	clear(s.side)
	for range ticks {
		for i := range s.nodes {
			if !s.down[i] {
				s.do(i, s.nodes[i].Tick(s.rng))
				s.nodes[i].ColdStart(false)
			}
		}
		for len(s.flying) > 0 {
			s.deliver(s.rng.IntN(len(s.flying)), false, false)
		}
	}
}

// content is a small valid content that tells its number.
func content(o clustermesh.Origin, n int) clustermesh.Content {
	e := clustermesh.Endpoint{
		Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"},
		Addr:    netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), Pod: fmt.Sprint(n),
		Node: o.Node, Ready: true,
	}
	c := clustermesh.Content{Endpoints: []clustermesh.Endpoint{e}}
	if o.Node != "" {
		c.Node = &clustermesh.Node{Name: o.Node, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	}
	return c
}

// sameEverywhere checks that all replicas hold the same, and what the writers said last.
func (s *sim) sameEverywhere(truth map[clustermesh.Origin]clustermesh.Content) {
	s.t.Helper()
	for i, r := range s.nodes {
		if r.Records().Len() != len(truth) {
			s.t.Fatalf("node %d holds %d records, not %d", i, r.Records().Len(), len(truth))
		}
		for o, want := range truth {
			if got := r.Records().Get(o); !sameContent(got.Content, want) {
				s.t.Fatalf("node %d holds of %s: %+v, want %+v", i, o, got, want)
			}
			if r.entries[o].version != s.nodes[0].entries[o].version {
				s.t.Fatalf("nodes 0 and %d hold different versions of %s", i, o)
			}
		}
		for c, d := range r.digests {
			if d != s.nodes[0].digests[c] {
				s.t.Fatalf("digests of %s differ", c)
			}
		}
	}
}

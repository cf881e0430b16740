// Package sim runs many nodes of a clusterset in one process and in virtual time: the nodes that straitd runs
// (clustermesh/gossip/node, with their trust and what they observe), not a model of them.
//
// Input is a Config: how many clusters and nodes, a seed, and what the network does. Outputs are the nodes'
// states, the messages and bytes that they sent, and how long things took. Everything follows from the seed.
// It must not know the clock, sockets, goroutines or testing: nothing sleeps.
//
// What package gossip and its streams do around a node is played, with their timing: connections and their
// handshakes, heartbeats, back-off, the search for other daemons, probes, requests for statements, and the
// saved state. Messages are encoded as on the wire. What all receivers would do with the same result is done once:
// records are decoded once, and their seals verified once. Links have delays, loss, a bandwidth, and can be cut, one
// way or both; a connection keeps the order of its messages, as TCP does, and different ones do not. A message
// occupies its receiver for what it costs (costOf). fault.go lists what can go wrong.
//
// memberlist is no part of a node, so it is played too, and only roughly (member.go): who joins whom, how
// news of members spreads, and that a member whom no other member reaches is called gone after a few seconds.
// Also left out: bounds on queues of streams, TLS, strangers, and the files themselves.
package sim

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/topology"
)

// Config is which clusterset to run.
type Config struct {
	Seed uint64
	// Clusters have Nodes each, with Endpoints.
	Clusters, Nodes, Endpoints int
	// Pinned is true if the clusters are pinned and sign; otherwise everyone is believed.
	Pinned bool
	// Loss is the share of packets that is lost, and Skew the largest difference of a clock from the right time.
	Loss float64
	Skew time.Duration
	// Rooted is how many machines of a cluster have its root; 0: two of them, so that one can fail.
	Rooted int
	// Diskless saves nothing: for many nodes, that takes a lot of memory.
	Diskless bool
	// Topology chooses the neighbours. Nil is topology.Default().
	Topology topology.Topology
	// Measure, if not nil, runs what a node does in an event, so that its cost can be measured. News is true if
	// the event is a message or a publication, and not what happens with time.
	Measure func(news bool, work func())
}

// Network is machines and the links between them.
type Network struct {
	// Machines are all machines, by cluster and then by name.
	Machines []*Machine
	// Sent is what was sent so far.
	Sent Traffic
	// Loss is the share of packets that is lost now, and Jitter how much longer than usual packets take at most, so
	// that those of different connections overtake each other.
	Loss   float64
	Jitter time.Duration

	cfg   Config
	rng   *rand.Rand
	now   time.Duration
	queue queue
	at    map[netip.AddrPort]*Machine
	bases []time.Duration      // how long packets take between two clusters
	cut   map[[2]*Machine]bool // from, to
	pins  authority.Pins
	// verified is whether what peers show proves their keys.
	verified map[string]bool
	seals    map[seal]verdict
	decoded  map[uint64]replica.Message // by the hash of its bytes
	tracks   []*Track
	wrong    error // what was never to happen and did, the first time
	news     bool  // what is handled now is a message or a publication
}

// start is when each simulation begins.
var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// New returns machines that are off.
func New(cfg Config) *Network {
	w := &Network{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), Loss: cfg.Loss, bases: bases(cfg.Clusters),
		at: map[netip.AddrPort]*Machine{}, cut: map[[2]*Machine]bool{}, verified: map[string]bool{}, seals: map[seal]verdict{}, decoded: map[uint64]replica.Message{},
	}
	if cfg.Rooted == 0 {
		w.cfg.Rooted = 2
	}
	if cfg.Pinned {
		w.pins = pins(cfg.Clusters)
	}
	for c := range cfg.Clusters {
		for n := range cfg.Nodes {
			m := newMachine(w, c, n)
			w.Machines = append(w.Machines, m)
			w.at[m.addr] = m
		}
	}
	return w
}

// of returns the machines of a cluster.
func (w *Network) of(cluster int) []*Machine {
	return w.Machines[cluster*w.cfg.Nodes : (cluster+1)*w.cfg.Nodes]
}

// Now returns how long the simulation has run.
func (w *Network) Now() time.Duration { return w.now }

// Run lets time pass.
func (w *Network) Run(d time.Duration) {
	for end := w.now + d; ; {
		e, any := w.queue.next(end)
		if !any {
			w.now = end
			return
		}
		w.now = e.at
		if e.of == nil || e.of.life == e.life {
			e.do()
		}
	}
}

// Until lets time pass until something is true, which is looked at in steps, for at most a time.
// It reports whether it is true.
func (w *Network) Until(is func() bool, step, most time.Duration) bool {
	for end := w.now + most; !is(); w.Run(step) {
		if w.now >= end {
			return false
		}
	}
	return true
}

// Later does something after a time.
func (w *Network) Later(d time.Duration, do func()) { w.queue.add(event{at: w.now + d, do: do}) }

// Draw returns a random time below d.
func (w *Network) Draw(d time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(max(int64(d), 1)))
}

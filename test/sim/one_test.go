package sim

import (
	"runtime"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

// TestOneOfThousand bounds what one node of 1,000 allocates, in kB, for what happens often. Most of it is copies of
// all that the node knows, so a step that makes the node look only at what changed lowers the bounds.
func TestOneOfThousand(t *testing.T) {
	w := New(Config{Seed: *seed, Clusters: 10, Nodes: 100, Endpoints: 10})
	for _, m := range w.Machines {
		m.lead = func() (bool, uint64) { return false, 0 }
	}
	m, other := w.Machines[0], w.Machines[1]
	m.fill(startAll(w.Machines), other)
	m.learnAll(w.Machines)
	m.beat()
	if n := m.node.State().Records.Len(); n != 1000 {
		t.Fatalf("it has %d records", n)
	}
	from := other.shows()
	session, err := m.node.Opened(from, node.Shown{}, other.addr.Addr().String(), m.clock())
	if err != nil {
		t.Fatal(err)
	}
	change := func(then func()) {
		other.Publish()
		for _, e := range other.node.Entries() {
			if e.Record.Origin == other.Self {
				session.Receive(&replica.Snapshot{Entries: []replica.Entry{e}}, m.clock())
			}
		}
		then()
		m.node.Take()
	}
	id := member.ID{Origin: clustermesh.Origin{Cluster: clusterName(1), Node: "newcomer"}, Boot: 7}
	for _, c := range []struct {
		what  string
		bound float64
		event func()
	}{
		{"a change, with writing it", 65, func() { change(func() {}) }},
		{"a change, and the state after it", 750, func() { change(func() { m.node.State() }) }},
		{"a beat", 23, func() { m.node.Beat(nil, nil, m.clock()); m.node.Take() }},
		{"a member that comes or goes", 460, func() {
			e := node.MemberEvent{Member: member.Peer{ID: id}, Addr: other.addr, Alive: w.rng.IntN(2) > 0}
			m.node.Beat([]node.MemberEvent{e}, nil, m.clock())
			m.node.Take()
		}},
	} {
		const runs = 20
		before := allocated()
		began := time.Now()
		for range runs {
			w.now += 10 * time.Millisecond
			c.event()
		}
		took := time.Since(began) / runs
		kB := (allocated() - before) / runs / 1e3
		t.Logf("%-36s %8.0f kB; on this machine, now: %s", c.what, kB, took)
		if kB > c.bound && slow == 1 { // the race detector allocates too
			t.Errorf("%s allocates %.0f kB, more than %.0f", c.what, kB, c.bound)
		}
	}
}

// allocated is how much was allocated so far, in bytes.
func allocated() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.TotalAlloc)
}

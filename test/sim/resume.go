package sim

import (
	"time"

	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

// Resume starts machines as if they had run for long: each has the records of all, and all are
// members. To let many find each other takes much longer than what there is to measure afterwards.
// The machines must have their cluster's root, because signers are asked later.
func (w *Network) Resume(machines []*Machine) {
	all := startAll(machines)
	for i, m := range machines {
		m.fill(all, machines[(i+1)%len(machines)])
		m.learnAll(machines)
	}
}

// startAll starts machines, and returns what they publish, as it arrives: with its bytes, so that
// not each receiver has to encode it to verify it.
func startAll(machines []*Machine) (all []replica.Entry) {
	for _, m := range machines {
		if m.number == 0 {
			m.Start() // it knows of no other, so that it leads at once
		} else {
			m.Start(machines[0])
		}
		for _, e := range m.node.Entries() {
			all = append(all, arrived(e))
		}
	}
	return all
}

// arrived returns an entry as its receivers decode it.
func arrived(e replica.Entry) replica.Entry {
	bytes, err := replica.Encode(&replica.Snapshot{Entries: []replica.Entry{e}})
	if err != nil {
		panic(err)
	}
	m, err := replica.Decode(bytes)
	if err != nil {
		panic(err)
	}
	return m.(*replica.Snapshot).Entries[0]
}

// fill gives a machine all records, as from another one.
func (m *Machine) fill(all []replica.Entry, other *Machine) {
	from := other.shows()
	m.do(func(n *node.Node, now time.Time) {
		s, err := n.Opened(from, m.net.verify(n, from), m.addr.Addr().String(), now)
		if err != nil {
			panic(err)
		}
		s.Receive(&replica.Snapshot{Entries: all}, now)
		s.Close(now)
	})
}

// learnAll makes all machines members, which no rumour has to tell.
func (m *Machine) learnAll(machines []*Machine) {
	for _, p := range machines {
		m.learn(p.node.Self().ID, p)
	}
	m.pool.rumours = nil
}

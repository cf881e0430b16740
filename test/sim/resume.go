package sim

import (
	"time"

	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

// Resume starts machines as if they had run for long: each has the records of all, and all are members. To let
// many find each other takes much longer than what there is to measure afterwards. The machines must have their
// cluster's root, because signers are asked later.
func (w *Network) Resume(machines []*Machine) {
	var all []replica.Entry
	for _, m := range machines {
		if m.number == 0 {
			m.Start() // it knows of no other, so that it leads at once
		} else {
			m.Start(machines[0])
		}
		all = append(all, m.node.Entries()...)
	}
	for i, m := range machines {
		from := machines[(i+1)%len(machines)].shows()
		m.do(func(n *node.Node, now time.Time) {
			s, err := n.Opened(from, w.verify(n, from), m.addr.Addr().String(), now)
			if err != nil {
				panic(err)
			}
			s.Receive(&replica.Snapshot{Entries: all}, now)
			s.Close(now)
		})
	}
	for _, m := range machines {
		for _, p := range machines {
			m.learn(p.node.Self().ID, p)
		}
		m.pool.rumours = nil
	}
}

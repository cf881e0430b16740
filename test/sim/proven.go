package sim

import (
	"fmt"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
)

// recent is how long before it becomes a member a daemon can have proven that it is there, and is alive at once.
// Package observe allows more, but fewer seconds exclude that it was found silent meanwhile.
const recent = 2 * time.Second

// proof is when a life of a daemon last proved on a new connection that it is there.
type proof struct {
	boot uint64
	at   time.Duration
}

// proves notes that a daemon has proven to this one that it is there.
func (m *Machine) proves(p member.Peer) { m.proven[p.Origin] = proof{p.Boot, m.net.now} }

// checkMembers notes it as wrong if a member that has just proven that it is there is not alive after the beat that
// made it a member: then the wait for another proof delays elections and traffic at each start of a daemon.
func (m *Machine) checkMembers(events []node.MemberEvent) {
	for _, e := range events {
		if !e.Alive { // the end of one life makes what another one proved void too
			delete(m.proven, e.Member.Origin)
		}
	}
	for _, e := range events {
		o := e.Member.Origin
		p, any := m.proven[o]
		// What an earlier life sent can arrive later than what this one proved.
		late := slices.ContainsFunc(m.in, func(c *conn) bool { return c.stream.from.Self == o && c.fromLife != c.stream.from.life })
		if e.Alive && any && p.boot == e.Member.Boot && m.net.now-p.at < recent && !late && !m.hears(o) && m.net.wrong == nil {
			m.net.wrong = fmt.Errorf("after %s, %s has become a member at %s, to which it had proven that it is there %s before, and is not alive",
				m.net.now, o, m.Self, m.net.now-p.at)
		}
	}
}

// hears reports whether a machine sees a node as alive.
func (m *Machine) hears(o clustermesh.Origin) bool {
	return m.node.Contacts().Contact(o).Heard()
}

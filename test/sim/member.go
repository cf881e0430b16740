package sim

import (
	"slices"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
)

// Timing of memberlist: how often it passes on news and to how many members, how often it looks at members,
// and how long one is suspected before it is called gone.
const (
	gossipEvery = 200 * time.Millisecond
	gossipTo    = 3
	gossipTimes = 4
	lookEvery   = time.Second
	suspicion   = 4 * time.Second
)

// pool plays memberlist for one daemon.
type pool struct {
	members map[member.ID]*seen
	order   []member.ID // of members
	rumours []rumour
	events  []node.MemberEvent
}

// seen is a member, and when it last answered this daemon or another one.
type seen struct {
	machine *Machine
	at      time.Duration
}

// rumour is a new member that others are told of, some more times.
type rumour struct {
	id   member.ID
	at   *Machine
	left int
}

func newPool() pool { return pool{members: map[member.ID]*seen{}} }

// gossips starts what memberlist does again and again.
func (m *Machine) gossips() {
	m.after(m.net.Draw(gossipEvery), m.spread)
	m.after(m.net.Draw(lookEvery), m.look)
}

// answers reports whether a life of a daemon answers another machine, which asks it directly or has a third
// machine ask it.
func (m *Machine) answers(id member.ID, asks *Machine) bool {
	if m.node == nil || m.node.Self().Boot != id.Boot {
		return false
	}
	return m.net.talk(m, asks) || slices.ContainsFunc(m.net.Machines, func(third *Machine) bool {
		return third.node != nil && m.net.talk(m, third) && m.net.talk(third, asks)
	})
}

// learn notes a member.
func (m *Machine) learn(id member.ID, at *Machine) {
	if at == m || m.pool.members[id] != nil || !at.answers(id, m) {
		return
	}
	m.pool.members[id] = &seen{at, m.net.now}
	m.pool.order = append(m.pool.order, id)
	m.pool.rumours = append(m.pool.rumours, rumour{id, at, gossipTimes})
	m.changed(node.MemberEvent{Member: at.node.Self(), Addr: at.addr, Alive: true})
}

// changed tells the node of a change of the members.
func (m *Machine) changed(e node.MemberEvent) {
	m.pool.events = append(m.pool.events, e)
	m.poke()
}

// join exchanges the members with another daemon, over a connection.
func (m *Machine) join(t *Machine) {
	m.after(2*m.net.delay(m, t), func() {
		if t.node == nil || !m.net.talk(m, t) {
			return
		}
		mine, its := slices.Clone(m.pool.order), slices.Clone(t.pool.order)
		m.learn(t.node.Self().ID, t)
		t.learn(m.node.Self().ID, m)
		for _, id := range its {
			if s := t.pool.members[id]; s != nil {
				m.learn(id, s.machine)
			}
		}
		for _, id := range mine {
			if s := m.pool.members[id]; s != nil {
				t.learn(id, s.machine)
			}
		}
	})
}

// spread passes on news of members to a few.
func (m *Machine) spread() {
	m.after(gossipEvery, m.spread)
	if len(m.pool.rumours) == 0 || len(m.pool.order) == 0 {
		return
	}
	news := slices.Clone(m.pool.rumours)
	for i := range m.pool.rumours {
		m.pool.rumours[i].left--
	}
	m.pool.rumours = slices.DeleteFunc(m.pool.rumours, func(r rumour) bool { return r.left == 0 })
	for range gossipTo {
		id := m.pool.order[m.net.rng.IntN(len(m.pool.order))]
		t := m.pool.members[id].machine
		if !m.net.passes(m, t) || m.net.rng.Float64() < m.net.Loss {
			continue
		}
		m.net.Later(m.net.delay(m, t), func() {
			if t.node == nil {
				return
			}
			for _, r := range news {
				t.learn(r.id, r.at)
			}
		})
	}
}

// look calls members gone that have not answered for long enough.
func (m *Machine) look() {
	m.after(lookEvery, m.look)
	gone := map[member.ID]bool{}
	for _, id := range m.pool.order {
		s := m.pool.members[id]
		switch {
		case s.machine.answers(id, m):
			s.at = m.net.now
		case m.net.now-s.at > suspicion:
			gone[id] = true
			m.changed(node.MemberEvent{Member: member.Peer{ID: id}, Addr: s.machine.addr})
		}
	}
	if len(gone) == 0 {
		return
	}
	m.pool.order = slices.DeleteFunc(m.pool.order, func(id member.ID) bool { return gone[id] })
	for id := range gone {
		delete(m.pool.members, id)
	}
}

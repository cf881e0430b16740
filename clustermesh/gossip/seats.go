package gossip

import (
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/pool"
)

// seats is member.Room with a lock of its own. No other lock is taken under it, because memberlist
// calls it with its own lock held.
type seats struct {
	mu   sync.Mutex
	room *member.Room
}

var _ pool.Seats = (*seats)(nil)

func newSeats(pins authority.Pins) *seats {
	s := &seats{room: member.NewRoom(authority.DefaultQuota.Nodes)}
	s.repin(pins)
	return s
}

// Admit implements pool.Seats.
func (s *seats) Admit(m member.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room.Admit(m, time.Now())
}

// Joined implements pool.Seats.
func (s *seats) Joined(m member.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.Joined(m)
}

// Left implements pool.Seats.
func (s *seats) Left(m member.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.Left(m, time.Now())
}

// repin says how many nodes the pinned clusters can have; all the same if none is pinned.
func (s *seats) repin(pins authority.Pins) {
	var quotas map[clustermesh.ClusterName]int
	if pins != nil {
		quotas = map[clustermesh.ClusterName]int{}
	}
	for c, p := range pins {
		quotas[c] = p.Quota.WithDefaults().Nodes
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.SetQuotas(quotas)
}

// know says which nodes have records here, or are listed by their clusters.
func (s *seats) know(self clustermesh.Origin, records map[clustermesh.Origin]clustermesh.Record) {
	known := map[clustermesh.Origin]bool{self: true}
	for o, r := range records {
		if o.Node != "" {
			known[o] = true
		}
		for _, n := range r.Content.Nodes {
			known[clustermesh.Origin{Cluster: o.Cluster, Node: n}] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.Know(known)
}

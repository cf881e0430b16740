package gossip

import (
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/pool"
)

// seats is member.Room with a lock of its own. No other lock is taken under it, because memberlist
// calls it with its own lock held.
type seats struct {
	mu   sync.Mutex
	room *member.Room
}

var (
	_ pool.Seats = (*seats)(nil)
	_ node.Room  = (*seats)(nil)
)

func newSeats() *seats { return &seats{room: member.NewRoom(authority.DefaultQuota.Nodes)} }

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

// SetQuotas implements node.Room.
func (s *seats) SetQuotas(quotas map[clustermesh.ClusterName]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.SetQuotas(quotas)
}

// Know implements node.Room.
func (s *seats) Know(nodes map[clustermesh.Origin]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.Know(nodes)
}

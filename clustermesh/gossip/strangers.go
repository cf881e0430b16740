package gossip

import (
	"net/netip"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/meter"
	"strait.io/strait/clustermesh/gossip/node"
)

// strangers is node.Strangers with a lock of its own: the port counts what it refuses in goroutines of its
// own.
type strangers struct {
	mu    sync.Mutex
	count *node.Strangers
}

func newStrangers() *strangers { return &strangers{count: node.NewStrangers()} }

// refused is pool.Config.Refused.
func (s *strangers) refused(why member.Refusal, from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Refused(why, from, time.Now())
}

func (s *strangers) counts() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count.Counts()
}

func (s *strangers) problems(now time.Time) map[string]clustermesh.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count.Problems(now)
}

// Refused returns how often something that came to the port, a record, or a peer's word that it is a
// node, was refused in this life of the daemon, by kind.
func (g *Gossip) Refused() map[string]uint64 {
	out := g.strangers.counts()
	g.do(func(n *node.Node, _ time.Time) {
		records, peers := n.Refused()
		out["identity"] = peers
		for why, count := range records {
			out["record_"+why] = count
		}
	})
	return out
}

// Bytes is how many bytes of one kind were sent or received.
type Bytes = meter.Count

// Bytes returns how many bytes were sent and received in this life of the daemon.
func (g *Gossip) Bytes() []Bytes { return g.meter.Counts() }

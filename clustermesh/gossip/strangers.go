package gossip

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/pool"
	"strait.io/strait/internal/problem"
)

// abuse is how many of what strangers send must be refused before it is a Problem: a port scan and a
// daemon with the wrong key send a few.
const abuse = 20

// strangers counts what was refused of what came to the port, by kind. Strangers decide how often
// that is, and can choose the source of a datagram. So there is one count, with one example, for all
// sources.
type strangers struct {
	mu    sync.Mutex
	kinds map[pool.Refusal]*refusals
}

type refusals struct {
	total uint64 // in this life of the daemon
	// bout is how many there were since the last pause of node.ProblemLife, last when the last one came,
	// and example the source of the first.
	bout    uint64
	last    time.Time
	example netip.Addr
}

func newStrangers() *strangers {
	s := &strangers{kinds: map[pool.Refusal]*refusals{}}
	for _, why := range pool.Refusals {
		s.kinds[why] = &refusals{} // so that a rate sees the first
	}
	return s
}

// refused notes that something was refused.
func (s *strangers) refused(why pool.Refusal, from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.kinds[why], time.Now()
	if now.Sub(k.last) > node.ProblemLife {
		k.bout, k.example = 0, from
	}
	k.total, k.bout, k.last = k.total+1, k.bout+1, now
}

// counts returns how often something was refused in this life of the daemon, by kind.
func (s *strangers) counts() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]uint64{}
	for why, k := range s.kinds {
		out[string(why)] = k.total
	}
	return out
}

// problems returns a Problem for each kind that is seen often now. It changes when the count has ten
// times the size, and not with each one more: each change is a line of the log.
func (s *strangers) problems(now time.Time) map[string]clustermesh.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]clustermesh.Problem{}
	for why, k := range s.kinds {
		if k.bout < abuse || now.Sub(k.last) > node.ProblemLife {
			continue
		}
		size := uint64(10)
		for size*10 < k.bout {
			size *= 10
		}
		out[string(why)] = strangerProblem(why, size, k.example)
	}
	return out
}

func strangerProblem(why pool.Refusal, size uint64, example netip.Addr) clustermesh.Problem {
	what := map[pool.Refusal]string{
		pool.NotTLS:   "TCP connections without TLS",
		pool.Unproven: "TCP connections whose peers did not prove that they have the gossip key",
		pool.Crowded:  "TCP connections that waited with too many others for proof of the gossip key",
		pool.NotOurs:  "datagrams that are not strait's",
		pool.OtherKey: "datagrams that the gossip key cannot decrypt",
		pool.Unusual:  "messages of peers that have the gossip key, which no daemon of strait sends,",
		pool.TooFast:  "datagrams of peers that have the gossip key, which were too many in a second,",
	}[why]
	p := clustermesh.Problem{
		Code:    problem.StrangersRefused,
		Object:  "gossip port",
		Message: fmt.Sprintf("more than %d %s were refused, the first from %s", size, what, example),
		Try:     "let only nodes of the clusterset reach the port, and find out who else sends to it; if the source is such a node, compare its gossip key",
		Warning: true,
	}
	switch why {
	case pool.TooMany:
		p.Object = "gossip"
		p.Message = fmt.Sprintf("more than %d new members were refused because there are too many, the first at %s", size, example)
		p.Try = "if a cluster grew, pin it, with a higher quota.nodes (authority.pinsFile); otherwise an attacker who has the gossip key invents members: replace the key (strait clusterset rotate --gossip-key)"
	case pool.Unusual, pool.TooFast:
		p.Try = "find the machine that sends them; if it is not one of the clusterset, replace the gossip key (strait clusterset rotate --gossip-key)"
	}
	return p
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

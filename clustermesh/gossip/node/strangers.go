package node

import (
	"fmt"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/problem"
)

// abuse is how many of what strangers send must be refused before it is a Problem: a port scan and a
// daemon with the wrong key send a few.
const abuse = 20

// Strangers counts what was refused of what came to the port, by kind. Strangers decide how often
// that is, and can choose the source of a datagram. So there is one count, with one example, for all
// sources. It is apart from Node, so that a flood of strangers needs no turn of the node.
type Strangers struct {
	kinds map[member.Refusal]*refusals
}

type refusals struct {
	total uint64 // in this life of the daemon
	// bout is how many there were since the last pause of ProblemLife, last when the last one came,
	// and example the source of the first.
	bout    uint64
	last    time.Time
	example netip.Addr
}

// NewStrangers returns counts of zero.
func NewStrangers() *Strangers {
	s := &Strangers{kinds: map[member.Refusal]*refusals{}}
	for _, why := range member.Refusals {
		s.kinds[why] = &refusals{} // so that a rate sees the first
	}
	return s
}

// Refused notes that something was refused.
func (s *Strangers) Refused(why member.Refusal, from netip.Addr, now time.Time) {
	k := s.kinds[why]
	if now.Sub(k.last) > ProblemLife {
		k.bout, k.example = 0, from
	}
	k.total, k.bout, k.last = k.total+1, k.bout+1, now
}

// Counts returns how often something was refused in this life of the daemon, by kind.
func (s *Strangers) Counts() map[string]uint64 {
	out := map[string]uint64{}
	for why, k := range s.kinds {
		out[string(why)] = k.total
	}
	return out
}

// Problems returns a Problem for each kind that is seen often now. It changes when the count has ten
// times the size, and not with each one more: each change is a line of the log.
func (s *Strangers) Problems(now time.Time) map[string]clustermesh.Problem {
	out := map[string]clustermesh.Problem{}
	for why, k := range s.kinds {
		if k.bout < abuse || now.Sub(k.last) > ProblemLife {
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

func strangerProblem(why member.Refusal, size uint64, example netip.Addr) clustermesh.Problem {
	what := map[member.Refusal]string{
		member.NotTLS:   "TCP connections without TLS",
		member.Unproven: "TCP connections whose peers did not prove that they have the gossip key",
		member.Crowded:  "TCP connections that waited with too many others for proof of the gossip key",
		member.NotOurs:  "datagrams that are not strait's",
		member.OtherKey: "datagrams that the gossip key cannot decrypt",
		member.Unusual:  "messages of peers that have the gossip key, which no daemon of strait sends,",
		member.TooFast:  "datagrams of peers that have the gossip key, which were too many in a second,",
	}[why]
	p := problem.Named("gossip port", "").Problem(clustermesh.Problem{
		Code:    problem.StrangersRefused,
		Message: fmt.Sprintf("more than %d %s were refused, the first from %s", size, what, example),
		Try:     "let only nodes of the clusterset reach the port, and find out who else sends to it; if the source is such a node, compare its gossip key",
		Warning: true,
	})
	switch why {
	case member.TooMany:
		p.Object = "gossip"
		p.Message = fmt.Sprintf("more than %d new members were refused because there are too many, the first at %s", size, example)
		p.Try = "if a cluster grew, pin it, with a higher quota.nodes (authority.pinsFile); otherwise an attacker who has the gossip key invents members: replace the key (strait clusterset rotate --gossip-key)"
	case member.Unusual, member.TooFast:
		p.Try = "find the machine that sends them; if it is not one of the clusterset, replace the gossip key (strait clusterset rotate --gossip-key)"
	}
	return p
}

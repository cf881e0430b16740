package observe

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
)

// Timing of the contact with other nodes.
const (
	// stalled is how long a stream may say nothing before the machine is probed: between two and three
	// heartbeats.
	stalled = 1300 * time.Millisecond
	// silentRounds is how many probes in a row must be silent; quietRounds how many if the machine answered
	// after its daemon was gone. Traffic does not wait for the verdict there, and a wrong one stands longer.
	silentRounds = 2
	quietRounds  = 4
	// holdDown is how long a machine that was silent must answer before it counts, unless its daemon is
	// heard. A machine that boots answers long before its pods do.
	holdDown = 20 * time.Second
	// reprobe is the pause between probes of a node that is lost, before jitter.
	reprobe = time.Second
	// duplicateAge is how long two lives of one node may overlap: a restart elsewhere overlaps until
	// memberlist has noticed that the first life is gone.
	duplicateAge = 8 * time.Second
	// maxProbing bounds the machines probed at once.
	maxProbing = 64
)

// Verdict is what probing a machine found.
type Verdict uint8

const (
	// Blind: the probe could not be made or ran late, so it says nothing about the machine.
	Blind Verdict = iota
	// Silent: nothing answered on any address.
	Silent
	// Answered: something did, if only by refusing.
	Answered
)

// contact is what is observed of one node.
type contact struct {
	lives    map[uint64]life // live members, by boot
	addr     netip.AddrPort  // where the node was last a member
	streams  int             // streams from it
	streamed bool            // had a stream since it was last found alive
	framed   time.Time       // last word on a stream
	heard    time.Time       // last sign of life of its daemon
	answered bool            // the last probe said so
	since    time.Time       // it has answered without a break since then
	rounds   int             // silent probes in a row
	probing  bool
	due      time.Time // not probed again before
}

type life struct {
	addr  netip.AddrPort
	since time.Time
}

// state is the contact with the node in any of its lives.
func (n *contact) state() clustermesh.Contact {
	limit := silentRounds
	if !n.since.IsZero() {
		limit = quietRounds
	}
	switch {
	case len(n.lives) > 0:
		return clustermesh.Alive
	case n.rounds >= limit:
		return clustermesh.Silent
	case n.answered:
		return clustermesh.Quiet
	}
	return clustermesh.Held
}

// of returns the contact with the life that wrote a record of the given epoch. A daemon that is heard but
// has not published in its new life says nothing for what an earlier life wrote: of that only the machine
// is there.
func (n *contact) of(epoch uint64) clustermesh.Contact {
	if n.state() != clustermesh.Alive {
		return n.state()
	}
	for boot := range n.lives {
		if boot <= epoch {
			return clustermesh.Alive
		}
	}
	return clustermesh.Quiet
}

// back reports whether a machine that was silent has answered for long enough.
func (n *contact) back(now time.Time) bool {
	return n.answered && now.Sub(n.since) >= holdDown
}

// suspect reports whether a live member's stream has fallen silent.
func (n *contact) suspect(now time.Time) bool {
	return n.streamed && (n.streams == 0 || now.Sub(n.framed) > stalled)
}

// wanted reports whether the machine is to be probed now.
func (n *contact) wanted(now time.Time) bool {
	return !n.probing && !now.Before(n.due) && (n.state() != clustermesh.Alive || n.suspect(now))
}

// revive forgets what probes said, on a sign of life.
func (n *contact) revive(now time.Time) {
	n.framed, n.answered, n.since, n.rounds = now, false, time.Time{}, 0
}

// probed notes what a probe that began at a time found.
func (n *contact) probed(v Verdict, began, now time.Time, rng *rand.Rand) {
	n.probing = false
	n.due = began.Add(jitter(reprobe, rng))
	switch {
	case n.heard.After(began):
		// Heard meanwhile: the probe is old news.
	case v == Answered:
		if !n.answered {
			n.since = now
		}
		n.answered, n.rounds = true, 0
	case v == Silent:
		n.answered = false
		n.rounds++
		if n.state() != clustermesh.Silent {
			n.due = now
		} else {
			n.since = time.Time{}
		}
	}
}

// youngest returns where the youngest life listens.
func (n *contact) youngest() netip.AddrPort {
	addr := n.addr
	var boot uint64
	for b, l := range n.lives {
		if b >= boot {
			boot, addr = b, l.addr
		}
	}
	return addr
}

// duplicates returns the addresses of lives that have gone on at more than one for too long.
func (n *contact) duplicates(now time.Time) (addrs []netip.AddrPort) {
	seen := map[netip.AddrPort]bool{}
	for _, l := range n.lives {
		if now.Sub(l.since) > duplicateAge && !seen[l.addr] {
			seen[l.addr] = true
			addrs = append(addrs, l.addr)
		}
	}
	if len(addrs) < 2 {
		return nil
	}
	return addrs
}

// jitter spreads a pause over ±50 %, so that nodes do not act in step.
func jitter(d time.Duration, rng *rand.Rand) time.Duration {
	return d/2 + time.Duration(rng.Int64N(int64(d)))
}

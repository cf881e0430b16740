package member

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

const (
	// maxTargets bounds the attempts of one round, and maxHints the hints among them.
	maxTargets = 8
	maxHints   = 4
)

// Target is an address that may be a daemon that is no member yet.
type Target struct {
	Addr netip.AddrPort
	// Seed is the seed as configured; empty if the address is a hint or comes from a record.
	Seed string
}

// Seeds are where a daemon looks for others, and whether there is another to find.
type Seeds struct {
	seeds []string
	hints []netip.AddrPort
	self  map[netip.AddrPort]bool // addresses at which this daemon answers
	away  bool                    // some seed is another daemon, or may be
	// awaited: some hint may turn out to be another daemon; late: that was waited for long enough.
	awaited, late bool
}

// NewSeeds takes checked seeds and the addresses that are known to be this daemon's.
func NewSeeds(seeds []string, self ...netip.AddrPort) *Seeds {
	s := &Seeds{seeds: seeds, away: len(seeds) > 0, self: map[netip.AddrPort]bool{}}
	for _, a := range self {
		s.self[a] = true
	}
	return s
}

// Set replaces seeds, each once and checked, and hints.
func (s *Seeds) Set(seeds []string, hints []netip.AddrPort) {
	if slices.ContainsFunc(seeds, func(seed string) bool { return !slices.Contains(s.seeds, seed) }) {
		s.away = true // until they turn out to be ourselves
	}
	s.seeds, s.hints = seeds, slices.Clone(hints)
	s.awaited = !s.late && slices.ContainsFunc(hints, func(a netip.AddrPort) bool { return !s.self[a] })
}

// Away reports whether some seed is, or may yet turn out to be, another daemon.
func (s *Seeds) Away() bool { return s.away }

// Waiting says for whom the first exchange waits; empty if there is no other daemon to find.
func (s *Seeds) Waiting() string {
	switch {
	case s.away:
		return fmt.Sprintf("a first exchange with any other daemon (seeds %s)", strings.Join(s.seeds, ", "))
	case s.awaited:
		return "a first exchange with another node of the cluster"
	}
	return ""
}

// Late ends the wait for hints; it reports whether there was one.
func (s *Seeds) Late() (ended bool) {
	ended = s.awaited
	s.awaited, s.late = false, s.late || ended
	return ended
}

// Next returns the seeds to look up, and a few of the hints, so that seeds have their turn.
func (s *Seeds) Next(rng *rand.Rand) (seeds []string, hints []Target) {
	for _, i := range rng.Perm(len(s.hints))[:min(len(s.hints), maxHints)] {
		hints = append(hints, Target{Addr: s.hints[i]})
	}
	return s.seeds, hints
}

// IsSelf notes an address at which this daemon answers.
func (s *Seeds) IsSelf(addr netip.AddrPort) { s.self[addr] = true }

// Resolved notes what the seeds' names mean now; it reports whether Away changed.
func (s *Seeds) Resolved(targets []Target) (changed bool) {
	self := map[string]bool{}
	for _, t := range targets {
		is, known := self[t.Seed]
		self[t.Seed] = s.self[t.Addr] && (is || !known)
	}
	away := slices.ContainsFunc(s.seeds, func(seed string) bool { return !self[seed] })
	changed = away != s.away
	s.away = away
	return changed
}

// Targets chooses a random few of the seeds' addresses and of those of known nodes, without this daemon and
// the addresses of live members. Reached are the seeds that need no attempt.
//
// Of too many, half are seeds': after a partition one seed among hundreds of nodes that are lost would
// otherwise not have its turn for minutes.
func (s *Seeds) Targets(seeds []Target, known, live []netip.AddrPort, rng *rand.Rand) (out []Target, reached map[string]bool) {
	skip := maps.Clone(s.self)
	for _, a := range live {
		skip[a] = true
	}
	reached = map[string]bool{}
	tried := map[netip.AddrPort]bool{}
	var lost []Target
	add := func(to *[]Target, t Target) {
		if skip[t.Addr] {
			reached[t.Seed] = true
		} else if !tried[t.Addr] {
			tried[t.Addr] = true
			*to = append(*to, t)
		}
	}
	for _, t := range seeds {
		add(&out, t)
	}
	for _, a := range known {
		add(&lost, Target{Addr: a})
	}
	shuffle(out, rng)
	shuffle(lost, rng)
	out = out[:min(len(out), max(maxTargets/2, maxTargets-len(lost)))]
	return append(out, lost[:min(len(lost), maxTargets-len(out))]...), reached
}

func shuffle(ts []Target, rng *rand.Rand) {
	rng.Shuffle(len(ts), func(i, j int) { ts[i], ts[j] = ts[j], ts[i] })
}

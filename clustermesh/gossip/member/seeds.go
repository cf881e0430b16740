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
	// maxTargets bounds the attempts of one round, and maxHints bounds the hints among them.
	maxTargets = 8
	maxHints   = 4
)

// Target is an address where a daemon may be that is not a member yet.
type Target struct {
	Addr netip.AddrPort
	// Seed is the seed as configured; empty if the address is a hint or comes from a record.
	Seed string
}

// Seeds knows where a daemon looks for others, and whether there is another one to find.
type Seeds struct {
	seeds []string
	hints []netip.AddrPort
	self  map[netip.AddrPort]bool // addresses at which this daemon answers
	away  bool                    // some seed is another daemon, or may be
	// awaited: some hint may turn out to be another daemon. late: the wait for hints is over.
	awaited, late bool
}

// NewSeeds makes Seeds from valid seeds and the addresses known to be this daemon's own.
func NewSeeds(seeds []string, self ...netip.AddrPort) *Seeds {
	s := &Seeds{seeds: seeds, away: len(seeds) > 0, self: map[netip.AddrPort]bool{}}
	for _, a := range self {
		s.self[a] = true
	}
	return s
}

// Set replaces the seeds, which must be checked and distinct, and the hints.
func (s *Seeds) Set(seeds []string, hints []netip.AddrPort) {
	if slices.ContainsFunc(seeds, func(seed string) bool { return !slices.Contains(s.seeds, seed) }) {
		s.away = true // until they turn out to be this daemon
	}
	s.seeds, s.hints = seeds, slices.Clone(hints)
	s.awaited = !s.late && slices.ContainsFunc(hints, func(a netip.AddrPort) bool { return !s.self[a] })
}

// Away reports whether some seed is, or may yet turn out to be, another daemon.
func (s *Seeds) Away() bool { return s.away }

// Waiting returns what the first exchange waits for; empty if there is no other daemon to find.
func (s *Seeds) Waiting() string {
	switch {
	case s.away:
		return fmt.Sprintf("a first exchange with any other daemon (seeds %s)", strings.Join(s.seeds, ", "))
	case s.awaited:
		return "a first exchange with another node of the cluster"
	}
	return ""
}

// Every reports whether all seeds are among those reached.
func (s *Seeds) Every(reached map[string]bool) bool {
	return !slices.ContainsFunc(s.seeds, func(seed string) bool { return !reached[seed] })
}

// Late ends the wait for hints, and reports whether there was one to end.
func (s *Seeds) Late() (ended bool) {
	ended = s.awaited
	s.awaited, s.late = false, s.late || ended
	return ended
}

// Next returns the seeds to look up, and a random few of the hints: with all of them, seeds would
// rarely be chosen.
func (s *Seeds) Next(rng *rand.Rand) (seeds []string, hints []Target) {
	for _, i := range rng.Perm(len(s.hints))[:min(len(s.hints), maxHints)] {
		hints = append(hints, Target{Addr: s.hints[i]})
	}
	return s.seeds, hints
}

// IsSelf notes an address at which this daemon answers.
func (s *Seeds) IsSelf(addr netip.AddrPort) { s.self[addr] = true }

// Resolved notes the current addresses of the seeds, and reports whether Away changed.
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

// Targets chooses at random a few addresses of seeds, hints and lost nodes, leaving out this daemon
// and live members. Hints are the targets in found that have no seed; lost has a list of addresses
// for each cluster. reached are the seeds that need no attempt.
//
// If there are too many addresses, half of those chosen are of seeds, and a quarter are hints.
// Otherwise one seed among hundreds of lost nodes could wait minutes for its turn after a partition,
// or forever, if a record lists thousands of addresses. Clusters take turns for the same reason.
func (s *Seeds) Targets(found []Target, lost [][]netip.AddrPort, live []netip.AddrPort, rng *rand.Rand) (out []Target, reached map[string]bool) {
	taken := maps.Clone(s.self)
	for _, a := range live {
		taken[a] = true
	}
	reached = map[string]bool{}
	tried := map[netip.AddrPort]bool{}
	var seeds, hints []Target
	for _, t := range found {
		switch {
		case taken[t.Addr]:
			reached[t.Seed] = true
		case tried[t.Addr]:
		case t.Seed == "":
			tried[t.Addr] = true
			hints = append(hints, t)
		default:
			tried[t.Addr] = true
			seeds = append(seeds, t)
		}
	}
	shuffle(seeds, rng)
	shuffle(hints, rng)
	maps.Copy(taken, tried)
	others := inTurn(lost, taken, maxTargets, rng)
	few := hints[:min(len(hints), max(maxTargets/4, maxTargets/2-len(others)))]
	seeds = seeds[:min(len(seeds), max(maxTargets/2, maxTargets-len(few)-len(others)))]
	few = hints[:min(len(hints), max(len(few), maxTargets-len(seeds)-len(others)))]
	return slices.Concat(seeds, few, others[:min(len(others), maxTargets-len(seeds)-len(few))]), reached
}

// inTurn draws up to n distinct addresses at random, from one list after the other.
func inTurn(lists [][]netip.AddrPort, taken map[netip.AddrPort]bool, n int, rng *rand.Rand) (out []Target) {
	drawn := maps.Clone(taken)
	var left [][]netip.AddrPort
	for _, i := range rng.Perm(len(lists)) {
		left = append(left, slices.Clone(lists[i]))
	}
	for len(out) < n && len(left) > 0 {
		for i := 0; i < len(left) && len(out) < n; i++ {
			for list := left[i]; len(list) > 0; list = left[i] {
				last := len(list) - 1
				j := rng.IntN(len(list))
				a := list[j]
				list[j], left[i] = list[last], list[:last]
				if !drawn[a] {
					drawn[a] = true
					out = append(out, Target{Addr: a})
					break
				}
			}
		}
		left = slices.DeleteFunc(left, func(list []netip.AddrPort) bool { return len(list) == 0 })
	}
	return out
}

func shuffle(ts []Target, rng *rand.Rand) {
	rng.Shuffle(len(ts), func(i, j int) { ts[i], ts[j] = ts[j], ts[i] })
}

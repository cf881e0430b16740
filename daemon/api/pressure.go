package api

import (
	"fmt"
	"slices"
)

// nearlyFull is the part of a map in use from which it is a warning: time to raise its size before it
// matters.
const nearlyFull = 0.8

// Share is the part of the map that is in use, 0…1.
func (m MapUsage) Share() float64 {
	if m.Limit == 0 {
		return 0
	}
	return min(float64(m.Used)/float64(m.Limit), 1)
}

// Problem says that the map is full or nearly so; false if it has room.
func (m MapUsage) Problem() (Problem, bool) {
	p := Problem{Object: "map " + m.Map}
	switch {
	case m.Soft || m.Limit == 0 || m.Share() < nearlyFull:
		return Problem{}, false
	case m.Used >= m.Limit:
		p.Message = fmt.Sprintf("is full (%d of %d entries): what was there stays in force, what is new has no place",
			m.Used, m.Limit)
	default:
		p.Warning = true
		p.Message = fmt.Sprintf("is %.0f %% full (%d of %d entries)", min(m.Share()*100, 99), m.Used, m.Limit)
	}
	if m.Setting != "" {
		p.Try = "raise " + m.Setting
	}
	return p, true
}

// withPressure adds the problems of full maps to those that the status has, unless it tells of the map
// already.
func (s Status) withPressure() Status {
	problems := slices.Clone(s.Problems)
	for _, m := range s.Datapath.Maps {
		p, found := m.Problem()
		if found && !slices.ContainsFunc(problems, func(q Problem) bool { return q.Object == p.Object }) {
			problems = append(problems, p)
		}
	}
	s.Problems = problems
	return s
}

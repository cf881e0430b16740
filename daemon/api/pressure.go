package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// nearlyFull is the part of a map in use from which it is a warning: time to raise its size before it
// matters.
const nearlyFull = 0.8

// mapProblem says that a map is full or nearly so; false if it has room.
func mapProblem(m datapath.MapUsage) (problem.Problem, bool) {
	p := problem.Problem{Object: "map " + m.Map}
	switch {
	case m.Soft || m.Limit == 0 || m.Share() < nearlyFull:
		return problem.Problem{}, false
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

// withDatapath adds the problems that follow from the datapath, full maps and programs of others, to those that the
// status has, unless it tells of the same thing already.
func (s Status) withDatapath() Status {
	problems := slices.Clone(s.Problems)
	add := func(p problem.Problem, found bool) {
		if found && !slices.ContainsFunc(problems, func(q problem.Problem) bool { return q.Object == p.Object }) {
			problems = append(problems, p)
		}
	}
	for _, m := range s.Datapath.Maps {
		add(mapProblem(m))
	}
	add(foreignProblem(s.Datapath.Foreign))
	s.Problems = problems
	return s
}

// foreignProblem says that others' programs are on the hooks: usually another socket load balancer's.
func foreignProblem(all []datapath.ForeignProgram) (problem.Problem, bool) {
	if len(all) == 0 {
		return problem.Problem{}, false
	}
	var names []string
	for _, f := range all {
		if name := cmp.Or(f.Name, "one without a name"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return problem.Problem{
		Object: "socket hooks",
		Message: fmt.Sprintf("%s of somebody else are on them (%s): if they balance Services too, the last to run decides",
			Count(len(all), "program"), strings.Join(names, ", ")),
		Try:     "turn that load balancer off for sockets, as socketLB in Cilium; if it only counts or permits, leave it",
		Warning: true,
	}, true
}

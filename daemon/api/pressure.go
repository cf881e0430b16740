package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// nearlyFull is the share of a map in use that raises a warning, while there is still time to
// enlarge the map.
const nearlyFull = 0.8

// mapProblem reports a map that is full or nearly so; false if it has room.
func mapProblem(m datapath.MapUsage) (problem.Problem, bool) {
	p := problem.Problem{Code: problem.MapFull, Object: "map " + m.Map}
	switch {
	case m.Soft || m.Limit == 0 || m.Share() < nearlyFull:
		return problem.Problem{}, false
	case m.Used >= m.Limit:
		p.Message = fmt.Sprintf("is full (%d of %d entries): existing entries stay in force, new ones do not fit",
			m.Used, m.Limit)
	default:
		p.Code, p.Warning = problem.MapNearlyFull, true
		p.Message = fmt.Sprintf("is %.0f %% full (%d of %d entries)", min(m.Share()*100, 99), m.Used, m.Limit)
	}
	if m.Setting != "" {
		p.Try = "raise " + m.Setting
	}
	return p, true
}

// withDatapath adds the Problems that follow from the datapath: full maps and foreign programs. It
// skips an object that already has a Problem.
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

// foreignProblem reports programs of other software on the hooks, usually another socket load
// balancer.
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
		Code:   problem.HooksShared,
		Object: "socket hooks",
		Message: fmt.Sprintf("%s of other software attached (%s): if they balance Services too, the last to run decides",
			Count(len(all), "program"), strings.Join(names, ", ")),
		Try:     "turn that load balancer off for sockets, such as socketLB in Cilium; if it only counts or filters, leave it",
		Warning: true,
	}, true
}

package api

import (
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
	p := problem.Named("map", m.Map).Problem(problem.Problem{Code: problem.MapFull})
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
		p.Try = "raise " + m.Setting + ", and run straitd cleanup between the daemon's stop and start: a map keeps its size until then"
	}
	return p, true
}

// WithDatapath adds the Problems that follow from the datapath: full maps and of foreign programs
// that run first, in the order of all. It skips an object that already has a Problem.
func (s Status) WithDatapath() Status {
	problems := slices.Clone(s.Problems)
	add := func(p problem.Problem, found bool) {
		if found && !slices.ContainsFunc(problems, func(q problem.Problem) bool { return q.Ref == p.Ref }) {
			problems = append(problems, p)
		}
	}
	for _, m := range s.Datapath.Maps {
		add(mapProblem(m))
	}
	add(foreignProblem(s.Datapath.Foreign))
	s.Problems = problem.Sort(problems)
	return s
}

// foreignProblem reports programs of other software that run before strait's, usually those of
// another socket load balancer. Those that run after strait's are no problem: status lists them.
func foreignProblem(all []datapath.ForeignProgram) (problem.Problem, bool) {
	first := datapath.Ahead(all)
	if len(first) == 0 {
		return problem.Problem{}, false
	}
	return problem.Named("socket hooks", "").Problem(problem.Problem{
		Code: problem.HooksShared,
		Message: fmt.Sprintf("programs of other software run before strait's (%s): if that software balances Services too, "+
			"it decides about the addresses that it knows: ClusterIPs, and imports, by strait's EndpointSlices",
			strings.Join(datapath.Names(first), ", ")),
		Try: "if it balances, attach it to the cgroup that strait serves, or to one above, where strait runs before it; " +
			"or turn it off for the sockets of pods (in Cilium: socketLB.hostNamespaceOnly); if it only counts or filters, leave it",
		Warning: true,
	}), true
}

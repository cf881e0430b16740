package route

import (
	"errors"
	"fmt"
	"net/netip"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// entry is a route as the kernel holds it.
type entry struct {
	datapath.Route
	// link is the index of the device; 0 for an unreachable route.
	link int
	// metric is strait's, unless another version of strait made the route.
	metric int
}

type entryKey struct {
	dst    netip.Prefix
	metric int
}

func (e entry) key() entryKey { return entryKey{e.Dst, e.metric} }

func (e entry) String() string {
	s := "route " + e.Dst.String()
	if e.Unreachable {
		s = "unreachable " + s
	}
	if e.Src.IsValid() {
		s += " src " + e.Src.String()
	}
	if e.MTU > 0 {
		s += fmt.Sprintf(" mtu %d", e.MTU)
	}
	return s
}

// diff says how to get from what the kernel holds to what is wanted through the device with index
// link. Invalid routes are left out, and each is a Problem.
func diff(have []entry, want []datapath.Route, link int) (datapath.Change[entry], []problem.Problem) {
	var problems []problem.Problem
	entries := make([]entry, 0, len(want))
	for _, r := range want {
		e, err := wantEntry(r, link)
		if err != nil {
			problems = append(problems, problem.Named("route", r.Dst.String()).Problem(problem.Problem{
				Code:    problem.PlanIncoherent,
				Message: err.Error() + ": left out", Try: "report this as a bug of strait: a plan must not contain it",
			}))
			continue
		}
		entries = append(entries, e)
	}
	same := func(a, b entry) bool { return a == b }
	return datapath.Diff(have, entries, entry.key, same), problems
}

func wantEntry(r datapath.Route, link int) (entry, error) {
	if !r.Dst.IsValid() || r.Dst.Addr().Is4In6() {
		return entry{}, errors.New("the destination is not an IPv4 or IPv6 prefix")
	}
	r.Dst = r.Dst.Masked()
	if r.Unreachable {
		// The kernel keeps no source for these, so with one they would always differ.
		return entry{Route: datapath.Route{Dst: r.Dst, Unreachable: true}, metric: metric}, nil
	}
	if r.Src.IsValid() && r.Src.Is4() != r.Dst.Addr().Is4() {
		return entry{}, fmt.Errorf("source %s is of the other IP family", r.Src)
	}
	return entry{Route: r, link: link, metric: metric}, nil
}

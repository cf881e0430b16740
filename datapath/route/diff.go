package route

import (
	"errors"
	"fmt"
	"net/netip"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// kernelRoute is a route as the kernel has it.
type kernelRoute struct {
	datapath.Route
	// link is the index of the device; 0 for an unreachable route.
	link int
	// metric is strait's, unless another version of strait made the route.
	metric int
}

type routeKey struct {
	dst    netip.Prefix
	metric int
}

func (e kernelRoute) key() routeKey { return routeKey{e.Dst, e.metric} }

func (e kernelRoute) String() string {
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

// diff returns how to get from what the kernel holds to what is wanted through the device with index
// link. Invalid routes are left out, and each is a Problem.
func diff(have []kernelRoute, want []datapath.Route, link int) (datapath.Change[kernelRoute], []problem.Problem) {
	var problems []problem.Problem
	routes := make([]kernelRoute, 0, len(want))
	for _, r := range want {
		e, err := toKernel(r, link)
		if err != nil {
			problems = append(problems, problem.Named("route", r.Dst.String()).Problem(problem.Problem{
				Code:    problem.PlanIncoherent,
				Message: err.Error() + ": left out", Try: "report this as a bug of strait: a plan must not contain it",
			}))
			continue
		}
		routes = append(routes, e)
	}
	same := func(a, b kernelRoute) bool { return a == b }
	return datapath.Diff(have, routes, kernelRoute.key, same), problems
}

func toKernel(r datapath.Route, link int) (kernelRoute, error) {
	if !r.Dst.IsValid() || r.Dst.Addr().Is4In6() {
		return kernelRoute{}, errors.New("the destination is not an IPv4 or IPv6 prefix")
	}
	r.Dst = r.Dst.Masked()
	if r.Unreachable {
		// The kernel keeps no source for these, so with one they would always differ.
		return kernelRoute{Route: datapath.Route{Dst: r.Dst, Unreachable: true}, metric: metric}, nil
	}
	if r.Src.IsValid() && r.Src.Is4() != r.Dst.Addr().Is4() {
		return kernelRoute{}, fmt.Errorf("source %s is of the other IP family", r.Src)
	}
	return kernelRoute{Route: r, link: link, metric: metric}, nil
}

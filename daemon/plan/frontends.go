package plan

import (
	"fmt"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// frontends are the frontends of all services, as last planned.
type frontends struct {
	sorted   []datapath.Frontend
	problems []clustermesh.Problem
	last     []*demand
}

// update returns the frontends of all services, sorted.
func (f *frontends) update(imports []*Import, globals []*Global) ([]datapath.Frontend, []clustermesh.Problem) {
	now := make([]*demand, 0, len(imports)+len(globals))
	for _, i := range imports {
		now = append(now, &i.demand)
	}
	for _, g := range globals {
		now = append(now, &g.demand)
	}
	if !f.patch(now) {
		f.sorted, f.problems = unique(all(imports, globals))
	}
	f.last = now
	return f.sorted, f.problems
}

// all returns the frontends in the order in which services may claim an address: the oldest import
// first.
func all(imports []*Import, globals []*Global) (out []datapath.Frontend) {
	for _, i := range slices.SortedFunc(slices.Values(imports), func(a, b *Import) int { return a.Compare(*b.Import) }) {
		out = append(out, i.desired...)
	}
	for _, g := range globals {
		out = append(out, g.desired...)
	}
	return out
}

// patch updates the frontends without sorting. It does so only if all services have the same
// addresses as before and no two services share one.
func (f *frontends) patch(now []*demand) bool {
	if len(now) != len(f.last) || len(f.problems) > 0 {
		return false
	}
	var differ []datapath.Frontend
	for i, d := range now {
		was := f.last[i].desired
		if datapath.SameList(was, d.desired) {
			continue
		}
		if !slices.EqualFunc(was, d.desired, func(a, b datapath.Frontend) bool { return a.Addr == b.Addr && a.Service == b.Service }) {
			return false
		}
		differ = append(differ, d.desired...)
	}
	if len(differ) == 0 {
		return true
	}
	f.sorted = slices.Clone(f.sorted) // the last Result holds it
	for _, d := range differ {
		i, _ := slices.BinarySearchFunc(f.sorted, d.Addr, func(f datapath.Frontend, a l4.Addr) int { return f.Addr.Compare(a) })
		f.sorted[i] = d
	}
	return true
}

// unique sorts frontends. If two services claim an address, the first gets it: otherwise the kernel
// would decide.
func unique(fs []datapath.Frontend) (out []datapath.Frontend, problems []clustermesh.Problem) {
	out = make([]datapath.Frontend, 0, len(fs))
	slices.SortStableFunc(fs, func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	for _, f := range fs {
		if n := len(out) - 1; n >= 0 && out[n].Addr == f.Addr {
			problems = append(problems, problem.Object("Service", "", f.Service).Problem(clustermesh.Problem{
				Code:    problem.AddressTaken,
				Message: fmt.Sprintf("%s is already the address of %s: not programmed for this service", f.Addr, out[n].Service),
				Try:     "give each Service a ClusterIP of its own, outside clustersetCIDRs",
			}))
			continue
		}
		out = append(out, f)
	}
	return out, problems
}

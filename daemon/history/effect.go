package history

import (
	"cmp"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
)

// planned is a service in a plan.
type planned interface {
	comparable
	Frontends() []plan.Frontend
	Desired() []datapath.Frontend
}

// effects says which services' connections go elsewhere, those that have no backend any more first.
func effects(before, after *plan.Result) (out []api.Effect) {
	out = compare(out, before.Imports, after.Imports, func(i *plan.Import) clustermesh.ServiceName { return i.Service })
	out = compare(out, before.Globals, after.Globals, func(g *plan.Global) clustermesh.ServiceName { return g.Service })
	slices.SortStableFunc(out, func(a, b api.Effect) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

func rank(e api.Effect) int {
	if e.To == "" || e.To == nowhere {
		return 0
	}
	return 1
}

// compare goes through two sorted lists. What did not change is the same value in both.
func compare[T planned](out []api.Effect, before, after []T, name func(T) clustermesh.ServiceName) []api.Effect {
	var none T
	add := func(service clustermesh.ServiceName, was, now T) {
		if e, differs := effectOf(service, uses(was), uses(now)); differs {
			out = append(out, e)
		}
	}
	i := 0
	for _, now := range after {
		for i < len(before) && name(before[i]).Compare(name(now)) < 0 {
			add(name(before[i]), before[i], none)
			i++
		}
		was := none
		if i < len(before) && name(before[i]) == name(now) {
			was = before[i]
			i++
		}
		if was != now && (was == none || !sameKernel(was, now)) {
			add(name(now), was, now)
		}
	}
	for ; i < len(before); i++ {
		add(name(before[i]), before[i], none)
	}
	return out
}

// sameKernel reports whether the kernel holds the same of a service: most often, endpoints that are not in
// use change.
func sameKernel[T planned](was, now T) bool {
	return slices.EqualFunc(was.Desired(), now.Desired(), datapath.Frontend.Equal)
}

// use is where the connections to a service go.
type use struct {
	// there is false for a service that does not exist.
	there bool
	// to is in the words of strait explain, of the first frontend.
	to string
	// used are the endpoints that get new connections, and why has the reasons of the others.
	used map[endpoint]bool
	why  map[endpoint]string
}

// endpoint is an address of a cluster, at any port.
type endpoint struct {
	cluster clustermesh.ClusterName
	addr    netip.Addr
}

// nowhere is where connections go that are refused.
var nowhere = api.Frontend{}.Destination()

func uses[T planned](s T) (u use) {
	var none T
	if s == none {
		return u
	}
	u = use{there: true, to: nowhere, used: map[endpoint]bool{}, why: map[endpoint]string{}}
	for i, f := range s.Frontends() {
		out := api.Frontend{Addr: f.Addr}
		total := uint32(0)
		for _, v := range f.Choice.Verdicts {
			total += v.Weight
		}
		for _, v := range f.Choice.Verdicts {
			e := endpoint{v.Cluster, v.Addr.Addr()}
			if v.Weight == 0 {
				u.why[e] = v.Reason
				continue
			}
			u.used[e] = true
			out.Endpoints = append(out.Endpoints, api.Endpoint{Addr: v.Addr, Cluster: string(v.Cluster), Tier: v.Tier.String(), Share: float64(v.Weight) / float64(total)})
		}
		if i == 0 {
			u.to = out.Destination()
		}
	}
	return u
}

// effectOf compares where the connections to a service go.
func effectOf(service clustermesh.ServiceName, was, now use) (e api.Effect, differs bool) {
	e = api.Effect{Service: service.String(), From: was.to, To: now.to}
	counts := map[clustermesh.ClusterName]*api.ClusterEffect{}
	at := func(x endpoint) *api.ClusterEffect {
		if counts[x.cluster] == nil {
			counts[x.cluster] = &api.ClusterEffect{Cluster: string(x.cluster)}
		}
		return counts[x.cluster]
	}
	for x := range now.used {
		if !was.used[x] {
			at(x).Added++
		}
	}
	first := endpoint{}
	for x := range was.used {
		if now.used[x] {
			continue
		}
		at(x).Withdrawn++
		if why := now.why[x]; why != "" && (e.Why == "" || x.addr.Less(first.addr)) {
			e.Why, first = why, x
		}
	}
	for _, c := range counts {
		e.Clusters = append(e.Clusters, *c)
	}
	slices.SortFunc(e.Clusters, func(a, b api.ClusterEffect) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return e, was.there != now.there || e.From != e.To || len(e.Clusters) > 0
}

package objects

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/daemon/plan"
)

// localOf sums up what a cluster's own endpoints bear of a service: the port that lacks most stands for
// all. It returns nil if the cluster does not offer the service.
func localOf(all []plan.Outlook) *mcs.Local {
	has := func(o plan.Outlook) bool { return o.Own.Expected > 0 }
	if slices.ContainsFunc(all, has) { // of a family that the cluster's pods do not have, another Problem tells
		all = slices.DeleteFunc(slices.Clone(all), func(o plan.Outlook) bool { return !has(o) })
	}
	if len(all) == 0 {
		return nil
	}
	worst := slices.MaxFunc(all, func(a, b plan.Outlook) int {
		switch x, y := lacks(a), lacks(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	out := &mcs.Local{Expected: worst.Own.Expected, Healthy: worst.Own.Healthy, Share: worst.Own.Share, Whole: worst.Whole, Others: worst.Others}
	if slices.ContainsFunc(all, func(o plan.Outlook) bool { return o.Own != worst.Own }) {
		out.Port = worst.Port.String()
	}
	return out
}

// lacks is how much a port lacks: no endpoint is worse than too few.
func lacks(o plan.Outlook) float64 {
	if o.Own.Healthy == 0 {
		return 2
	}
	return o.Whole - o.Own.Share
}

// headlessLocal is localOf for a headless service, of which clients get all endpoints: nothing spills.
func headlessLocal(cluster clustermesh.ClusterName, endpoints []clustermesh.ClusterEndpoint) *mcs.Local {
	out, others := &mcs.Local{Headless: true}, map[clustermesh.ClusterName]bool{}
	for _, e := range endpoints {
		healthy := e.Ready && !e.Dead
		switch {
		case e.Terminating && !e.Ready:
		case e.Cluster != cluster && healthy:
			others[e.Cluster] = true
		case e.Cluster == cluster:
			out.Expected++
			if healthy {
				out.Healthy++
			}
		}
	}
	out.Others = slices.Sorted(maps.Keys(others))
	return out
}

// locals returns the global services of a plan, and the imports that the cluster exports by another API
// group's object, sorted by name. No condition of strait's may be there to hold how these fare.
func locals(exports []clustermesh.ExportStatus, r plan.Result) (out []mcs.Source[mcs.Local]) {
	for _, g := range r.Globals {
		if len(g.IPs) > 0 && len(g.Ports) > 0 {
			out = append(out, local{g.Service, g})
		}
	}
	for _, e := range exports {
		i, is := slices.BinarySearchFunc(r.Imports, e.Service, func(p *plan.Import, s clustermesh.ServiceName) int { return p.Service.Compare(s) })
		if is && e.Alias != "" && e.Exported && r.Imports[i].Type != clustermesh.Headless && len(r.Imports[i].Ports) > 0 {
			out = append(out, local{e.Service, r.Imports[i]})
		}
	}
	slices.SortStableFunc(out, func(a, b mcs.Source[mcs.Local]) int { return a.Name().Compare(b.Name()) })
	return slices.CompactFunc(out, func(a, b mcs.Source[mcs.Local]) bool { return a.Name() == b.Name() })
}

// local computes what the cluster's own endpoints bear of a service when it is needed.
type local struct {
	service clustermesh.ServiceName
	of      interface {
		Outlook() []plan.Outlook
		Version() uint64
	}
}

// Name implements mcs.Source.
func (l local) Name() clustermesh.ServiceName { return l.service }

// Make implements mcs.Source.
func (l local) Make() mcs.Local {
	if out := localOf(l.of.Outlook()); out != nil {
		return *out
	}
	return mcs.Local{} // the cluster offers none
}

// Same implements mcs.Source.
func (l local) Same(other mcs.Source[mcs.Local]) bool {
	o, is := other.(local)
	return is && l.of.Version() == o.of.Version()
}

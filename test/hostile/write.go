package hostile

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/daemon/plan"
)

// planned is an import for the leader.
type planned struct{ *plan.Import }

// Name implements mcs.Source.
func (p planned) Name() clustermesh.ServiceName { return p.Service }

// Make implements mcs.Source.
func (p planned) Make() mcs.Import {
	return mcs.Import{Import: *p.Import.Import, IPs: p.IPs, Endpoints: p.Endpoints()}
}

// Same implements mcs.Source.
func (p planned) Same(mcs.Source[mcs.Import]) bool { return false }

// maxWrites bounds what the leader writes for one Service in one go: no record here has many endpoints.
const maxWrites = 16

// write has the leader of west write what evil exports.
func (c *Case) write() error {
	r, _ := plan.Plan(c.inputs(c.under(c.byEvil())), plan.Past{})
	v := mcs.View{Cluster: west, Clusters: map[clustermesh.ClusterName]mcs.Knowledge{west: mcs.Current, east: mcs.Current, evil: mcs.Current}}
	v.Config.ClusterSetIPs, v.Config.ImportSlices = one(c, mcs.IPsDerived, mcs.IPsCIDR), one(c, mcs.SlicesAll, mcs.SlicesHeadless)
	exported := 0
	for _, i := range r.Imports {
		if v.Imports = append(v.Imports, planned{i}); slices.Contains(i.Exporters, evil) {
			exported++
		}
		if slices.Contains(i.Exporters, evil) && !open(i.Service) {
			return fmt.Errorf("evil exports %s", i.Service)
		}
	}
	if exported > quota.Exports {
		return fmt.Errorf("evil exports %d Services, and the quota is %d", exported, quota.Exports)
	}
	for _, i := range r.Imports {
		if err := c.writes(v, i.Service); err != nil {
			return fmt.Errorf("import %s: %w", i.Service, err)
		}
	}
	return nil
}

// writes returns what the leader writes that is not strait's, or too much.
func (c *Case) writes(v mcs.View, name clustermesh.ServiceName) error {
	var have mcs.Have
	if c.chance(3) { // a user's object of that name
		have.Import = &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: "users"}}
	}
	have.Trouble = mcs.Trouble{NameTaken: c.chance(3), OwnNameTaken: c.chance(3)} // by a user's Service
	ops, _ := mcs.Diff(v, name, have, began)
	if len(ops) > maxWrites {
		return fmt.Errorf("%d writes", len(ops))
	}
	for _, o := range ops {
		at := o.Object
		switch {
		case at.GetNamespace() != name.Namespace:
			return fmt.Errorf("%s, which is elsewhere", o)
		case at.GetUID() == "users" && (mcs.ImportOf(o) == nil || o.Verb == written.Delete):
			return fmt.Errorf("%s, which is a user's", o)
		case at.GetUID() == "users" && o.Verb != written.ApplyStatus && (mcs.ImportOf(o).Spec.Type != "" || len(mcs.ImportOf(o).Spec.Ports) > 0 || len(mcs.ImportOf(o).Labels) > 0):
			return fmt.Errorf("%s with %+v, which is a user's", o, mcs.ImportOf(o).Spec)
		case o.Slice() == nil:
			continue
		}
		for _, e := range o.Slice().Endpoints {
			for _, text := range e.Addresses {
				a := addr("%s", text)
				if !c.somebodys(a) {
					return fmt.Errorf("%s with %s", o, a)
				}
			}
		}
	}
	return nil
}

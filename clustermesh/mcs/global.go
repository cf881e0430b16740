package mcs

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// globalSlices updates the slices that a global Service asks for. They have the Service's label, so
// whatever reads its endpoints finds those of other clusters beside the cluster's own: CoreDNS,
// kube-proxy, gateways and Ingress controllers.
func (d *differ) globalSlices() {
	source, wanted := find(d.view.Globals, d.name, Source[Global].Name)
	if !wanted && !d.view.Settled(d.view.Cluster) {
		return // whether the Service asks is not known yet
	}
	var want []set
	if wanted {
		g, problems := fitGlobal(source.Make())
		want, d.problems = d.globalSets(g), append(d.problems, problems...)
	}
	d.slicesByCluster(want, !wanted, func(s Slice) bool { return s.Global })
}

// globalSets returns a set for each other cluster. A hostname that a pod of this cluster has stays
// that pod's: web-0.web is a member of this cluster's StatefulSet.
func (d *differ) globalSets(g Global) []set {
	byCluster, taken := map[clustermesh.ClusterName][]sliceEndpoint{}, map[string]bool{}
	for _, e := range g.Endpoints {
		if e.Cluster == d.view.Cluster {
			taken[e.Hostname] = true
		}
	}
	for _, e := range g.Endpoints {
		if e.Cluster == d.view.Cluster || !slices.Contains(g.Slices.Families, clustermesh.FamilyOf(e.Addr)) {
			continue
		}
		if taken[e.Hostname] {
			e.Hostname = ""
		}
		out := d.endpoint(e)
		out.Hints = d.hints(Backend{Cluster: e.Cluster, Node: e.Node, Zone: e.Zone}, g.TrafficDistribution)
		byCluster[e.Cluster] = append(byCluster[e.Cluster], sliceEndpoint{e.Addr, e.Ports, out})
	}
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: d.name.Name, UID: types.UID(g.Slices.UID)}}
	return sets("global/", owner, byCluster, func(c clustermesh.ClusterName) map[string]string {
		return map[string]string{
			discoveryv1.LabelServiceName:  d.name.Name,
			discoveryv1.LabelManagedBy:    object.SliceManager,
			object.LabelGlobalService:     d.name.Name,
			mcsv1beta1.LabelSourceCluster: string(c),
		}
	})
}

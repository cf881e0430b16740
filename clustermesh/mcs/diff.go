package mcs

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
)

// Diff returns the writes that bring one service nearer to what the view wants, in order: the
// import, the derived Service, slices, the import's addresses and status, those of imports of other
// groups, the slices of a global Service, the status of exports.
// Creations come before deletions. Some writes need what the API server adds (UIDs, ClusterIPs):
// call Diff again with the result until it returns none.
//
// It touches only strait's own objects, with two exceptions: the status of exports and imports, and
// the ips and one annotation of a user's import. It deletes nothing for lack of knowledge.
func Diff(v View, name clustermesh.ServiceName, h Have, now time.Time) ([]written.Op, []clustermesh.Problem) {
	if !v.hasNamespace(name.Namespace) {
		return nil, nil // its objects are deleted with it
	}
	d := &differ{view: v, name: name, have: h, now: metav1.NewTime(now).Rfc3339Copy()}
	if imp, wanted := v.wanted(name); wanted {
		d.wanted = true
		d.imp, d.problems = fit(imp)
	}
	if h.Import != nil && !OurImport(h.Import) {
		spec, problems := fitAsked(h.Import)
		d.asked, d.problems = spec, append(d.problems, problems...)
	}
	going := h.Import != nil && h.Import.DeletionTimestamp != nil
	switch {
	case going: // wait: the next import needs its name
		// Another program's finalizer can keep it for long, and clients its addresses with it.
		// Kubernetes deletes what belongs to it first, or when it is gone.
		if !slices.Contains(h.Import.Finalizers, metav1.FinalizerDeleteDependents) {
			d.heardSlices()
		}
	case d.wanted && h.Import == nil:
		d.createImport()
	case h.Import != nil && (d.wanted || !OurImport(h.Import)):
		d.keep()
	default:
		d.prune()
	}
	if !going && !d.settling {
		d.oldImport()
		d.gkeImport()
	}
	d.globalSlices()
	d.exportStatuses()
	return slices.Concat(d.ops, d.deletions, d.retries), d.problems
}

// differ works out the operations of one service.
type differ struct {
	view   View
	name   clustermesh.ServiceName
	have   Have
	now    metav1.Time
	imp    Import
	wanted bool
	// asked is the spec of a user's import, as far as a Service can have it.
	asked mcsv1beta1.ServiceImportSpec

	// retries are operations that are known to have failed. They come last, because nothing is
	// deleted after an operation that fails.
	ops, deletions, retries []written.Op
	problems                []clustermesh.Problem
	// group is that of the import in have, if it is not the MCS API's; see oldImport.
	group string
	// settling is set if the result of an operation is needed to go on.
	settling bool
}

func (d *differ) do(o written.Op) { d.ops = append(d.ops, o) }

func (d *differ) problem(p clustermesh.Problem) { d.problems = append(d.problems, p) }

// barred reports whether nothing may be imported under this name. Then no object of strait's stays,
// whichever clusters are heard.
func (d *differ) barred() bool { return d.view.Config.Barred.Why(d.name) != "" }

// keep updates an existing import, and what belongs to it.
func (d *differ) keep() {
	if d.uncertain() {
		// It is unknown what a cluster that contributed exports now. The merged spec stays, or that
		// cluster's share would be lost.
		d.heardSlices()
		d.importStatus()
		return
	}
	service := d.derivedService()
	d.importSlices()
	d.derivedSlices(service)
	if d.settling {
		return
	}
	d.importSpec(service)
	if !d.settling { // writing the spec makes the generation that the status names
		d.importStatus()
	}
}

// uncertain reports whether a cluster that contributed to the import may still export it, although
// it is not an exporter in the view.
func (d *differ) uncertain() bool {
	return slices.ContainsFunc(d.have.Import.Status.Clusters, func(c mcsv1beta1.ClusterStatus) bool {
		return d.unheard(clustermesh.ClusterName(c.Cluster)) && !d.strange(c)
	}) && !d.barred()
}

// strange reports whether a cluster in the import's status is none of the clusterset, as far as is
// known, and was put there by another writer: an implementation that was here before lists its own.
func (d *differ) strange(c mcsv1beta1.ClusterStatus) bool {
	_, known := d.view.Clusters[clustermesh.ClusterName(c.Cluster)]
	return !known && slices.Contains(ClustersOfOthers(d.have.Import.ManagedFields), c.Cluster)
}

// unheard reports whether it is unknown if a cluster exports the service. That is always unknown
// for a cluster without a name.
func (d *differ) unheard(c clustermesh.ClusterName) bool {
	return !d.view.Settled(c) && !slices.Contains(d.imp.Exporters, c)
}

// heardSlices updates the slices of the clusters that are known, while others are not.
func (d *differ) heardSlices() {
	d.importSlices()
	if s := d.inForce(); s != nil {
		d.derivedSlices(s)
	}
}

// prune removes what is left of an import that no cluster exports, if that is known for certain.
func (d *differ) prune() {
	h := d.have
	if h.Import == nil && len(h.Services) == 0 && !slices.ContainsFunc(h.Slices, func(s Slice) bool { return !s.Global }) {
		return
	}
	if h.Import != nil && d.uncertain() {
		d.problem(d.name.Ref("ServiceImport").Problem(clustermesh.Problem{
			Code:    problem.ImportKept,
			Message: fmt.Sprintf("an exporting cluster is not heard (status.clusters: %s): the import is kept as it is", clusterNames(h.Import.Status.Clusters)),
			Try:     "bring that cluster back; or, if it is gone for good, delete the ServiceImport",
			Warning: true,
		}))
		d.heardSlices()
		return
	}
	if !d.view.complete() && !d.barred() {
		return
	}
	for _, s := range h.Slices {
		if !s.Global && (d.barred() || s.Derived != "" || d.mayDelete(s)) {
			d.deleteSlice(s)
		}
	}
	for _, s := range h.Services {
		d.deleteService(s)
	}
	if h.Import != nil {
		d.deletions = append(d.deletions, written.Op{Verb: written.Delete, Kind: written.ServiceImport, Object: &mcsv1beta1.ServiceImport{ObjectMeta: meta(h.Import)}})
	}
}

// mayDelete reports whether an unwanted slice of the import is known to be out of date: its cluster
// has spoken or was evicted, or it names none.
func (d *differ) mayDelete(s Slice) bool {
	return s.Cluster == "" || d.view.Settled(s.Cluster)
}

func (d *differ) deleteSlice(s Slice) {
	m := metav1.ObjectMeta{Namespace: d.name.Namespace, Name: s.Name, UID: s.UID}
	d.deletions = append(d.deletions, written.Op{Verb: written.Delete, Kind: written.EndpointSlice, Object: &discoveryv1.EndpointSlice{ObjectMeta: m}})
}

func (d *differ) deleteService(s *corev1.Service) {
	if s.DeletionTimestamp == nil {
		m := meta(s)
		m.Labels = s.Labels
		d.deletions = append(d.deletions, written.Op{Verb: written.Delete, Kind: written.Service, Object: &corev1.Service{ObjectMeta: m}})
	}
}

// importSlices updates the slices of the MCS API. Those of a cluster that is not heard may be newer
// than what this daemon last knew of the cluster.
func (d *differ) importSlices() {
	var want []set
	on := d.hasSlices()
	if on {
		want = d.importSets()
	}
	d.slicesByCluster(want, !on, func(s Slice) bool { return s.Derived == "" && !s.Global })
}

// slicesByCluster updates the slices of one kind, of which want has a set for each cluster.
// Existing slices of a cluster that is not heard stay as they are, unless none is wanted at all.
func (d *differ) slicesByCluster(want []set, none bool, kind func(Slice) bool) {
	has := map[clustermesh.ClusterName]bool{}
	stale := map[string]bool{}
	for _, s := range d.have.Slices {
		if !kind(s) {
			continue
		}
		has[s.Cluster] = true
		if none || d.mayDelete(s) {
			stale[s.Name] = true
		}
	}
	for _, set := range want {
		c := clustermesh.ClusterName(set.labels[mcsv1beta1.LabelSourceCluster])
		if d.view.Settled(c) || !has[c] {
			d.slices(d.slicesOf(set), stale)
		}
	}
	d.deleteSlices(stale)
}

// hasSlices reports whether the import gets slices of its own once there are endpoints.
func (d *differ) hasSlices() bool { return d.view.Config.slicesFor(d.importType()) && !d.barred() }

// derivedSlices updates the slices behind the derived Service; service is the one in force, or nil.
// Slices of clusters that are not known stay. So do slices of another derived Service, as long as
// that Service exists.
func (d *differ) derivedSlices(service *corev1.Service) {
	stale, uncertain := map[string]bool{}, d.uncertain()
	for _, s := range d.have.Slices {
		of := d.service(s.Derived)
		if s.Derived != "" && (of == nil || service != nil && of.Name == service.Name) && !(uncertain && d.unheard(s.Cluster)) {
			stale[s.Name] = true
		}
	}
	if service != nil {
		for _, set := range d.derivedSets(service) {
			d.slices(d.slicesOf(set), stale)
		}
	}
	d.deleteSlices(stale)
}

// slices writes the wanted slices that differ, new ones first: an endpoint that moves from one
// slice to another is in both for a moment, never in neither. It removes the wanted slices from
// stale.
func (d *differ) slices(want []*discoveryv1.EndpointSlice, stale map[string]bool) {
	var later []written.Op
	for _, w := range want {
		i := slices.IndexFunc(d.have.Slices, func(s Slice) bool { return s.Name == w.Name })
		delete(stale, w.Name)
		if i < 0 {
			d.do(written.Op{Verb: written.Create, Kind: written.EndpointSlice, Object: w})
		} else if !sameSlice(d.have.Slices[i], w) {
			w.UID = d.have.Slices[i].UID
			later = append(later, written.Op{Verb: written.Apply, Kind: written.EndpointSlice, Object: w, Force: true})
		}
	}
	d.ops = append(d.ops, later...)
}

func (d *differ) deleteSlices(stale map[string]bool) {
	for _, s := range d.have.Slices { // in a stable order
		if stale[s.Name] {
			d.deleteSlice(s)
		}
	}
}

// meta returns what an operation needs to identify an existing object.
func meta(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

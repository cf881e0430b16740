package mcs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

// importStatus writes the import's status if it differs.
func (d *differ) importStatus() {
	have := d.have.Import
	news, restated := d.stated(have.Status.Conditions, have.Generation, d.importNews(have.Status.Conditions))
	want := mcsv1beta1.ServiceImportStatus{
		EndpointSliceObjects: mcsv1beta1.EndpointSliceObjectsAbsent,
		Clusters:             d.exporters(),
		Conditions:           append([]metav1.Condition{d.date(have.Status.Conditions, have.Generation, d.importReady())}, news...),
	}
	if d.hasSlices() {
		want.EndpointSliceObjects = mcsv1beta1.EndpointSliceObjectsPresent
	}
	ready := want.Conditions[0]
	want = prune(d.have.API.Imports, &mcsv1beta1.ServiceImport{Status: want}).Status
	if want.EndpointSliceObjects == have.Status.EndpointSliceObjects && sameClusters(have, want.Clusters) &&
		sameConditions(have.Status.Conditions, want.Conditions) {
		return
	}
	op := written.Op{
		Verb: written.ApplyStatus, Kind: written.ServiceImport, Force: true, Restates: restated,
		Object: &mcsv1beta1.ServiceImport{ObjectMeta: meta(have), Status: want},
	}
	if turned(have.Status.Conditions, ready) {
		op.Events = append(op.Events, written.Event{
			Warning: ready.Status == metav1.ConditionFalse && ready.Reason != pending || d.have.Trouble.NameTaken || d.have.Trouble.Refused != "",
			Reason:  ready.Reason, Message: ready.Message, Change: changeOf(have.Status.Conditions, ready),
		})
	}
	for _, c := range want.Conditions {
		if owners(c) {
			op.Events = append(op.Events, newsEvents(have.Status.Conditions, c)...)
		}
	}
	d.do(op)
}

// exporters returns the exporting clusters, and those that were listed before and are not known to
// have stopped.
func (d *differ) exporters() []mcsv1beta1.ClusterStatus {
	var out []mcsv1beta1.ClusterStatus
	add := func(name string) {
		if c := (mcsv1beta1.ClusterStatus{Cluster: name}); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, c := range d.imp.Exporters {
		add(string(c))
	}
	for _, c := range d.have.Import.Status.Clusters {
		if !d.view.Settled(clustermesh.ClusterName(c.Cluster)) && !d.barred() && !d.strange(c) {
			add(c.Cluster)
		}
	}
	sortClusters(out)
	return out
}

func sortClusters(cs []mcsv1beta1.ClusterStatus) {
	slices.SortFunc(cs, func(a, b mcsv1beta1.ClusterStatus) int { return cmp.Compare(a.Cluster, b.Cluster) })
}

// sameClusters compares the clusters in an import's status with the wanted ones. Others' stay.
func sameClusters(i *mcsv1beta1.ServiceImport, want []mcsv1beta1.ClusterStatus) bool {
	others := ClustersOfOthers(i.ManagedFields)
	have := slices.DeleteFunc(slices.Clone(i.Status.Clusters), func(c mcsv1beta1.ClusterStatus) bool {
		return slices.Contains(others, c.Cluster) && !slices.Contains(want, c)
	})
	sortClusters(have)
	return slices.Equal(have, want)
}

func clusterNames(cs []mcsv1beta1.ClusterStatus) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Cluster)
	}
	return strings.Join(out, ", ")
}

const (
	ready   = string(mcsv1beta1.ServiceImportReasonReady)
	pending = string(mcsv1beta1.ServiceImportReasonPending)
)

// importReady returns the condition Ready: whether the import can be used in this cluster.
func (d *differ) importReady() metav1.Condition {
	c := metav1.Condition{Type: string(mcsv1beta1.ServiceImportConditionReady), Status: metav1.ConditionFalse, Reason: pending}
	have, mismatch := d.have.Import, d.mismatch()
	switch {
	case d.barred():
		c.Message = "Nothing is imported here: " + d.view.Config.Barred.Why(d.name) + "."
	case !d.wanted && (d.uncertain() || !d.view.complete()):
		c.Message, c.Status = "Not all clusters of the clusterset have been heard yet.", metav1.ConditionUnknown
	case !d.wanted:
		c.Message = "No cluster of the clusterset exports this service."
	case d.importType() == clustermesh.ClusterSetIP && d.imp.Type == clustermesh.Headless:
		c.Message = "The exported Services are headless: this import of type ClusterSetIP gets no address."
	case mismatch != "":
		c.Reason, c.Message = string(mcsv1beta1.ServiceImportReasonIPFamilyNotSupported), mismatch
	case d.importType() == clustermesh.Headless, len(have.Spec.IPs) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ready, "Imported from "+clusterNames(d.exporters())+"."
		if refused := d.have.Trouble.RefusedSlices; refused != "" {
			c.Message = shorten(c.Message+" Its EndpointSlices are not up to date: "+refused, maxMessage)
		}
	case d.have.Trouble.NameTaken:
		c.Message = "Service " + d.serviceName() + ` exists and is not strait's: rename or delete it.`
	case d.have.Trouble.FamilyNotSupported, !d.view.Config.derived():
		c.Reason = string(mcsv1beta1.ServiceImportReasonIPFamilyNotSupported)
		c.Message = "This cluster has no ClusterSetIPs of the exported Services' IP families (" + familyNames(d.imp.Families) + ")."
	case d.have.Trouble.Refused != "":
		c.Message = shorten("Service "+d.serviceName()+" cannot be created: "+d.have.Trouble.Refused, maxMessage)
	case d.group == "" && !OurImport(have) && len(d.asked.Ports) == 0:
		c.Message = "This import lists no port that a Service can have."
	case len(d.imp.Ports) == 0:
		c.Message = "The exported Services have no ports."
	default:
		c.Message = "The derived Service has no ClusterIP yet."
	}
	return c
}

// mismatch explains why nothing can be reached at the import's addresses; empty if something can.
// The import keeps its addresses, and the clusters that had endpoints of their families may have
// left.
func (d *differ) mismatch() string {
	ips := d.have.Import.Spec.IPs
	if d.importType() != clustermesh.ClusterSetIP || len(ips) == 0 || len(d.imp.Families) == 0 || d.uncertain() {
		return ""
	}
	var families []clustermesh.Family
	for _, text := range ips {
		if ip, err := netip.ParseAddr(text); err == nil {
			families = append(families, clustermesh.FamilyOf(ip))
		}
	}
	has := func(f clustermesh.Family) bool { return slices.Contains(families, f) }
	// The families are the oldest export's; a younger one's endpoints may have others.
	if slices.ContainsFunc(d.imp.Families, has) ||
		slices.ContainsFunc(d.imp.Endpoints, func(e clustermesh.ClusterEndpoint) bool { return has(clustermesh.FamilyOf(e.Addr)) }) {
		return ""
	}
	return fmt.Sprintf("This cluster's ClusterSetIPs are %s (%s), but the Services exported by %s are %s: nothing can be reached at these addresses.",
		familyNames(families), strings.Join(ips, ", "), clusterNames(d.exporters()), familyNames(d.imp.Families))
}

func familyNames(fs []clustermesh.Family) string {
	var out []string
	for _, f := range fs {
		out = append(out, string(f))
	}
	return strings.Join(out, ", ")
}

// date sets a condition's generation and its time: when its status last changed.
func (d *differ) date(have []metav1.Condition, generation int64, c metav1.Condition) metav1.Condition {
	c.ObservedGeneration, c.LastTransitionTime = generation, d.now
	for _, h := range have {
		if h.Type == c.Type && h.Status == c.Status {
			c.LastTransitionTime = h.LastTransitionTime
		}
	}
	return c
}

// turned reports whether a condition changed in a way that people should hear about.
func turned(have []metav1.Condition, c metav1.Condition) bool {
	return !slices.ContainsFunc(have, func(h metav1.Condition) bool {
		return h.Type == c.Type && h.Status == c.Status && h.Reason == c.Reason
	})
}

// changeOf identifies the change of a condition by the state that it leaves and the one that it
// enters. The time is that of the state it leaves: leaders that write the new one at the same time
// would give it different times.
func changeOf(have []metav1.Condition, c metav1.Condition) string {
	was := metav1.Condition{}
	for _, h := range have {
		if h.Type == c.Type {
			was = h
		}
	}
	return fmt.Sprintf("%s: %s %s since %d, now %s %s", c.Type, was.Status, was.Reason, was.LastTransitionTime.Unix(), c.Status, c.Reason)
}

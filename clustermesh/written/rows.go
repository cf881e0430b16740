// Package written lists the kinds of objects that strait writes to API servers: who writes them, how
// they are marked as strait's, and what uninstalling does with them. It also has the type of one write.
//
// It has no input; its outputs are Rows, the one source for the writers, for the metrics and for
// strait uninstall, and Op, which those that decide return to those that write. Pure. It must not
// know why an object is written, nor how.
package written

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"strait.io/strait/clustermesh/object"
)

// The kinds, by the names that operations, Problems and metrics give them. A kind whose name another
// API group has too is named with its group.
const (
	Namespace     = "Namespace"
	Service       = "Service"
	EndpointSlice = "EndpointSlice"
	Ingress       = "Ingress"
	ServiceExport = "ServiceExport"
	ServiceImport = "ServiceImport"
	ServicePolicy = "ServicePolicy"
	// Those of the group in the text of KEP-1645, and of GKE's.
	OldExport    = "ServiceExport.multicluster.k8s.io"
	OldImport    = "ServiceImport.multicluster.k8s.io"
	GKEImport    = "ServiceImport.net.gke.io"
	MultiService = "MultiClusterService.networking.gke.io"
	MultiIngress = "MultiClusterIngress.networking.gke.io"
)

// Field managers. StatusManager is that of a status that is part of the object.
const (
	Manager       = "strait"
	StatusManager = Manager + "-status"
)

// Names of objects in strait's namespace. The chart has the same.
const (
	LeaderLease         = "strait-leader"
	KeysSecret          = "strait-authority"
	PinsConfigMap       = "strait-pins"
	TrustLevelConfigMap = "strait-believe"
	// ThisClusterConfigMap says what other clusters need to pin this one.
	ThisClusterConfigMap = "strait-this-cluster"
)

// Writer is a part of the leader that writes.
type Writer string

// The writers.
const (
	// Imports writes what imports and exports need.
	Imports Writer = "imports"
	// Mirrors writes what ServicePolicies ask for.
	Mirrors Writer = "mirrors"
	// GKE writes what objects of networking.gke.io ask for.
	GKE Writer = "gke"
	// Leader holds the Lease.
	Leader Writer = "leader"
	// Keys makes the cluster's keys, and asks who uses a token.
	Keys Writer = "keys"
)

// End is what uninstalling does with the objects of a row.
type End string

const (
	// Deleted: the objects that have the row's labels are deleted.
	Deleted End = "deleted"
	// Released: strait gives up the fields that it owns in objects of others.
	Released End = "released"
	// Named: the objects with the row's names in strait's namespace are deleted.
	Named End = "named"
	// Left: nothing is done, for the reason in Why.
	Left End = "left"
)

// Row is some of the objects that strait writes: those of one kind that one writer marks alike, or in
// which it owns fields.
type Row struct {
	Kind string
	// Resource has the version that strait writes by preference.
	Resource schema.GroupVersionResource
	By       Writer
	// Labels is the selector of strait's own objects. Objects of others have none.
	Labels string
	// LabelsSeen is the selector of what the writer watches, if it is wider: without one of its labels,
	// an object is still found, and gets the label back.
	LabelsSeen string
	// Names are the objects' names, if they are always the same.
	Names []string
	End   End
	// Why is set if objects are left.
	Why string
}

// Labels that mark objects. They are selectors.
const (
	byStrait    = object.LabelManagedBy + "=" + object.ManagedBy
	sliceOurs   = discoveryv1.LabelManagedBy + "=" + object.SliceManager
	mirrorsOnly = object.LabelPolicySet + "=" + object.DaemonsPolicySet
)

// Rows is everything that strait writes, in the order in which uninstalling goes through it:
// EndpointSlices before their Services, and these before the imports that they belong to.
//
// The mirrors of strait replicate are another policy set, so they are in no row.
var Rows = []Row{
	{Kind: EndpointSlice, Resource: resource("discovery.k8s.io", "v1", "endpointslices"), By: Imports, Labels: sliceOurs + ",!" + object.LabelPolicySet, LabelsSeen: sliceOurs, End: Deleted},
	{Kind: EndpointSlice, Resource: resource("discovery.k8s.io", "v1", "endpointslices"), By: Mirrors, Labels: sliceOurs + "," + mirrorsOnly, LabelsSeen: mirrorsOnly, End: Deleted},
	{Kind: Service, Resource: resource("", "v1", "services"), By: Imports, Labels: byStrait + "," + object.LabelServiceImport, LabelsSeen: byStrait, End: Deleted},
	{Kind: Service, Resource: resource("", "v1", "services"), By: Mirrors, Labels: byStrait + "," + mirrorsOnly, LabelsSeen: mirrorsOnly, End: Deleted},
	{Kind: Ingress, Resource: resource("networking.k8s.io", "v1", "ingresses"), By: GKE, Labels: byStrait + "," + object.LabelMultiIngress, End: Deleted},
	{Kind: Service, Resource: resource("", "v1", "services"), By: GKE, Labels: byStrait + "," + object.LabelMultiService, End: Deleted},
	{Kind: GKEImport, Resource: resource("net.gke.io", "v1", "serviceimports"), By: Imports, Labels: byStrait, End: Deleted},
	{Kind: ServiceImport, Resource: resource("multicluster.x-k8s.io", "v1beta1", "serviceimports"), By: Imports, Labels: byStrait, End: Deleted},

	{Kind: ServiceExport, Resource: resource("multicluster.x-k8s.io", "v1beta1", "serviceexports"), By: Imports, End: Released},
	{Kind: OldExport, Resource: resource("multicluster.k8s.io", "v1alpha1", "serviceexports"), By: Imports, End: Released},
	{Kind: ServiceImport, Resource: resource("multicluster.x-k8s.io", "v1beta1", "serviceimports"), By: Imports, End: Released},
	{Kind: OldImport, Resource: resource("multicluster.k8s.io", "v1alpha1", "serviceimports"), By: Imports, End: Released},
	{Kind: ServicePolicy, Resource: resource("strait.io", "v1alpha1", "servicepolicies"), By: Mirrors, End: Released},
	{Kind: MultiService, Resource: resource("networking.gke.io", "v1", "multiclusterservices"), By: GKE, End: Released},
	{Kind: MultiIngress, Resource: resource("networking.gke.io", "v1", "multiclusteringresses"), By: GKE, End: Released},

	{Kind: Namespace, Resource: resource("", "v1", "namespaces"), By: Mirrors, Labels: byStrait, End: Left, Why: "other objects may be in it by now"},
	{Kind: "Event", Resource: resource("events.k8s.io", "v1", "events"), By: Imports, End: Left, Why: "the API server deletes it after an hour"},
	{Kind: "TokenReview", Resource: resource("authentication.k8s.io", "v1", "tokenreviews"), By: Keys, End: Left, Why: "the API server answers it and stores nothing"},

	{Kind: "Lease", Resource: resource("coordination.k8s.io", "v1", "leases"), By: Leader, Names: []string{LeaderLease}, End: Named},
	{Kind: "Secret", Resource: resource("", "v1", "secrets"), By: Keys, Names: []string{KeysSecret}, End: Named},
	{Kind: "ConfigMap", Resource: resource("", "v1", "configmaps"), By: Keys, Names: []string{PinsConfigMap, TrustLevelConfigMap, ThisClusterConfigMap}, End: Named},
}

func resource(group, version, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}

// GroupVersionKind returns the kind as objects name it.
func (r Row) GroupVersionKind() schema.GroupVersionKind {
	name, _, _ := strings.Cut(r.Kind, ".")
	return r.Resource.GroupVersion().WithKind(name)
}

// Watched returns the selector of what the writer watches.
func (r Row) Watched() string { return cmp.Or(r.LabelsSeen, r.Labels) }

// Own returns the rows of a writer's own objects, which uninstalling deletes.
func Own(w Writer) (out []Row) {
	for _, r := range Rows {
		if r.By == w && r.End == Deleted {
			out = append(out, r)
		}
	}
	return out
}

// Kind returns the first row of a kind; false if it has none.
func Kind(name string) (Row, bool) {
	i := slices.IndexFunc(Rows, func(r Row) bool { return r.Kind == name })
	if i < 0 {
		return Row{}, false
	}
	return Rows[i], true
}

// Covers returns an error if uninstalling would not know what an operation writes: its kind has no row,
// or what it creates or updates has the labels of none.
func Covers(o Op) error {
	if _, listed := Kind(o.Kind); !listed {
		return fmt.Errorf("%s: its kind has no row in package written", o)
	}
	if o.Verb != Create && o.Verb != Update {
		return nil
	}
	for _, r := range Rows {
		selector, err := labels.Parse(r.Labels)
		if r.Kind == o.Kind && err == nil && !selector.Empty() && selector.Matches(labels.Set(o.Object.GetLabels())) {
			return nil
		}
	}
	return fmt.Errorf("%s: no row of package written has its labels, so strait uninstall would leave it behind", o)
}

// Check returns what is wrong with the row; nil if nothing is.
func (r Row) Check() error {
	selector, err := labels.Parse(r.Labels)
	switch {
	case r.Kind == "" || r.By == "" || r.Resource.Version == "" || r.Resource.Resource == "":
		return fmt.Errorf("the row of %s lacks its kind, version, resource or writer", r.Resource)
	case err != nil:
		return fmt.Errorf("the labels of %s: %w", r.Kind, err)
	case r.End == Deleted && selector.Empty():
		return fmt.Errorf("%s is deleted without labels: that would delete the objects of others", r.Kind)
	case r.End == Released && !selector.Empty():
		return fmt.Errorf("%s of others has strait's labels", r.Kind)
	case (r.End == Named) != (len(r.Names) > 0):
		return fmt.Errorf("%s has names, or is named, but not both", r.Kind)
	case (r.End == Left) != (r.Why != ""):
		return fmt.Errorf("%s is left behind without a reason, or has a reason and is not left", r.Kind)
	case r.End != Deleted && r.End != Released && r.End != Named && r.End != Left:
		return fmt.Errorf("%s: uninstalling does not know %q", r.Kind, r.End)
	}
	return nil
}

package kube

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/object"
)

// Names of kinds: the resource, and its group where there is one.
const (
	nodes             = "nodes"
	namespaces        = "namespaces"
	services          = "services"
	pods              = "pods"
	endpointSlices    = "endpointslices.discovery.k8s.io"
	serviceExports    = "serviceexports.multicluster.x-k8s.io"
	serviceImports    = "serviceimports.multicluster.x-k8s.io"
	clusterProperties = "clusterproperties.about.k8s.io"
	gkeExports        = "serviceexports.net.gke.io"
	kepExports        = "serviceexports.multicluster.k8s.io"
)

// need says what it means that a kind cannot be read.
type need uint8

const (
	// required: the cluster is unknown.
	required need = iota
	// useful: a Problem, and the rest goes on.
	useful
	// optional: nothing, if the API server does not serve it.
	optional
)

// kind is what is watched of one kind of objects.
type kind struct {
	name string
	need need
	// versions that strait can read, the best first. Custom resources have a group of their own and are
	// looked for by discovery.
	versions []schema.GroupVersionResource
	crd      bool
	// object is an empty one.
	object runtime.Object
	lister func(schema.GroupVersionResource) lister
	// labels and fields select what is sent.
	labels, fields string
	// keep makes of an object what is kept of it, nil if nobody reads any of it. It may use the object's parts, and what it
	// has made once it leaves as it is.
	keep func(any) named
}

// kinds is everything that a Source reads.
func kinds(cfg Config) []kind {
	c := cfg.Client
	core := func(resource string) []schema.GroupVersionResource {
		return []schema.GroupVersionResource{{Version: "v1", Resource: resource}}
	}
	typed := func(l lister) func(schema.GroupVersionResource) lister {
		return func(schema.GroupVersionResource) lister { return l }
	}
	export := func(group, version string) []schema.GroupVersionResource {
		return []schema.GroupVersionResource{{Group: group, Version: version, Resource: "serviceexports"}}
	}
	properties := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "about.k8s.io", Version: version, Resource: "clusterproperties"}
	}
	return []kind{
		{name: nodes, need: required, versions: core("nodes"), object: &corev1.Node{}, keep: keeping(keepNode),
			lister: typed(listerOf(c.core.CoreV1().Nodes()))},
		{name: services, need: required, versions: core("services"), object: &corev1.Service{}, keep: keeping(keepService),
			lister: typed(listerOf(c.core.CoreV1().Services("")))},
		// Slices that strait writes are other clusters' endpoints: read back, they would go round in circles.
		{name: endpointSlices, need: required, object: &discoveryv1.EndpointSlice{}, keep: keeping(keepSlice(string(cfg.Node))),
			versions: []schema.GroupVersionResource{{Group: discoveryv1.GroupName, Version: "v1", Resource: "endpointslices"}},
			labels:   discoveryv1.LabelManagedBy + "!=" + object.SliceManager,
			lister:   typed(listerOf(c.core.DiscoveryV1().EndpointSlices("")))},
		{name: serviceExports, need: required, crd: true, object: &mcsv1beta1.ServiceExport{}, keep: keeping(keepExport),
			versions: export(mcsv1beta1.GroupName, "v1beta1"), lister: typed(listerOf(c.mcs.MulticlusterV1beta1().ServiceExports("")))},
		{name: namespaces, need: useful, versions: core("namespaces"), object: &metav1.PartialObjectMetadata{}, keep: keeping(keepMetadata),
			lister: c.metadataOf},
		{name: pods, need: useful, versions: core("pods"), object: &corev1.Pod{}, keep: keeping(keepPod),
			fields: fields.OneTermEqualSelector("spec.nodeName", string(cfg.Node)).String(),
			lister: typed(listerOf(c.core.CoreV1().Pods("")))},
		// Imports that strait made are as many as the exports, and nothing of them is read.
		{name: serviceImports, need: useful, crd: true, object: &mcsv1beta1.ServiceImport{}, keep: keeping(keepImport),
			versions: []schema.GroupVersionResource{{Group: mcsv1beta1.GroupName, Version: "v1beta1", Resource: "serviceimports"}},
			labels:   object.LabelManagedBy + "!=" + object.ManagedBy,
			lister:   typed(listerOf(c.mcs.MulticlusterV1beta1().ServiceImports("")))},
		{name: gkeExports, need: optional, crd: true, versions: export("net.gke.io", "v1"), object: &metav1.PartialObjectMetadata{},
			keep: keeping(keepMetadata), lister: c.metadataOf},
		{name: kepExports, need: optional, crd: true, versions: export("multicluster.k8s.io", "v1alpha1"), object: &metav1.PartialObjectMetadata{},
			keep: keeping(keepMetadata), lister: c.metadataOf},
		{name: clusterProperties, need: optional, crd: true, object: &unstructured.Unstructured{}, keep: keeping(keepUnstructured),
			versions: []schema.GroupVersionResource{properties("v1beta1"), properties("v1alpha1")}, lister: c.dynamicOf},
	}
}

package object

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/internal/ovn"
)

// The resources of the kinds.
const (
	NodeResource      = "nodes"
	NamespaceResource = "namespaces"
	ServiceResource   = "services"
	PodResource       = "pods"
	SliceResource     = "endpointslices.discovery.k8s.io"
	ExportResource    = "serviceexports.multicluster.x-k8s.io"
	ImportResource    = "serviceimports.multicluster.x-k8s.io"
	GKEExportResource = "serviceexports.net.gke.io"
	KEPExportResource = "serviceexports.multicluster.k8s.io"
	KEPImportResource = "serviceimports.multicluster.k8s.io"
	PropertyResource  = "clusterproperties.about.k8s.io"
	PolicyResource    = "servicepolicies.strait.io"
	KarmadaResource   = "multiclusterservices.networking.karmada.io"

	MultiServiceResource = "multiclusterservices.networking.gke.io"
	MultiIngressResource = "multiclusteringresses.networking.gke.io"
)

const (
	nothingExported = "nothing is exported"
	installMCS      = "install the CRDs of the MCS API, v0.5.0 or newer, with strait install or kubectl apply -k https://github.com/kubernetes-sigs/mcs-api/config/crd"
)

// Kinds is everything that strait reads of a cluster, from an API server or from YAML. A new kind
// needs a row here, a type for what is kept of it, and a function that interprets it. A new label
// or annotation needs a key in its kind's row.
//
// Reading a kind needs the right to list and watch it: the chart's ClusterRole has a rule for each
// row.
var Kinds = []Kind{
	{
		Resource: NodeResource, Name: "Node", Need: Required, ClusterScoped: true, InFiles: true,
		Versions:    []Version{{Name: "v1", Object: &corev1.Node{}, List: &corev1.NodeList{}, keep: keeping(nodeFrom)}},
		Labels:      slices.Concat(regionLabels, zoneLabels, []string{clustermesh.LabelRelay}),
		Annotations: []string{AnnotationPrefixes, AnnotationClusterIPs, AnnotationDrain, clustermesh.AnnotationNodeKey, ovn.Annotation},
	},
	{
		Resource: ServiceResource, Name: "Service", Need: Required, InFiles: true,
		Versions:    []Version{{Name: "v1", Object: &corev1.Service{}, List: &corev1.ServiceList{}, keep: keeping(serviceFrom)}},
		AllLabels:   true,
		Annotations: slices.Concat(globalNames, sharedNames, affinityNames, slicesNames, routingNames),
		// Policies may copy them.
		OtherAnnotations: policy.Copyable,
	},
	{
		Resource: SliceResource, Name: "EndpointSlice", Need: Required, InFiles: true,
		Versions:    []Version{{Name: "v1", Object: &discoveryv1.EndpointSlice{}, List: &discoveryv1.EndpointSliceList{}, keep: keepingFor(sliceFor)}},
		Labels:      append([]string{discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy}, sourceLabels...),
		Annotations: []string{sourceAnnotation},
		// Slices that strait writes hold other clusters' endpoints: if they were read back, they
		// would circulate.
		Selector: discoveryv1.LabelManagedBy + "!=" + SliceManager,
	},
	{
		Resource: ExportResource, Name: "ServiceExport", Need: Required, Custom: true, InFiles: true,
		Missing: nothingExported, Install: installMCS,
		Versions: []Version{
			{Name: "v1beta1", Object: &mcsv1beta1.ServiceExport{}, List: &mcsv1beta1.ServiceExportList{}, keep: keeping(exportFrom)},
			// It has the same fields, so the same types read it.
			{Name: "v1alpha1", Object: &mcsv1beta1.ServiceExport{}, List: &mcsv1beta1.ServiceExportList{}, keep: keeping(exportFrom)},
		},
		Annotations: routingNames,
	},
	{
		Resource: NamespaceResource, Name: "Namespace", Need: Useful, ClusterScoped: true, InFiles: true, MetadataOnly: true,
		Versions:    []Version{{Name: "v1", Object: &corev1.Namespace{}, List: &corev1.NamespaceList{}, keep: keeping(namespaceFrom)}},
		Annotations: []string{AnnotationDrain, clustermesh.AnnotationAccept, annotationLocal},
	},
	{
		Resource: PodResource, Name: "Pod", Need: Useful, NodeField: "spec.nodeName",
		Versions:    []Version{{Name: "v1", Object: &corev1.Pod{}, List: &corev1.PodList{}, keep: keeping(podFrom)}},
		Annotations: []string{AnnotationOptOut},
	},
	{
		Resource: ImportResource, Name: "ServiceImport", Need: Useful, Custom: true,
		Missing: nothingExported, Install: installMCS,
		Versions: []Version{
			{Name: "v1beta1", Object: &mcsv1beta1.ServiceImport{}, List: &mcsv1beta1.ServiceImportList{}, keep: keeping(importFrom)},
			{Name: "v1alpha1", Object: &mcsv1beta1.ServiceImport{}, List: &mcsv1beta1.ServiceImportList{}, keep: keeping(importFrom)},
		},
		Labels: []string{LabelManagedBy},
		// There are as many imports made by strait as exports, and nothing of them is read.
		Selector: LabelManagedBy + "!=" + ManagedBy,
	},
	{
		Resource: GKEExportResource, Name: "ServiceExport", Need: Optional, Custom: true, MetadataOnly: true,
		Versions: []Version{{Name: "v1", keep: keeping(aliasFrom("ServiceExport.net.gke.io"))}},
	},
	{
		Resource: KEPExportResource, Name: "ServiceExport", Need: Optional, Custom: true, MetadataOnly: true,
		Versions: []Version{{Name: "v1alpha1", keep: keeping(aliasFrom("ServiceExport.multicluster.k8s.io"))}},
	},
	{
		// All are users' own: strait makes none.
		Resource: KEPImportResource, Name: "ServiceImport", Need: Optional, Custom: true, MetadataOnly: true,
		Versions: []Version{{Name: "v1alpha1", keep: keeping(importByUser("ServiceImport.multicluster.k8s.io"))}},
	},
	{
		Resource: PolicyResource, Name: policy.Kind, Need: Optional, ClusterScoped: true, Custom: true, InFiles: true,
		Versions: []Version{{Name: "v1alpha1", Object: &policy.Policy{}, List: &policy.List{}, keep: keeping(policyFrom)}},
	},
	{
		Resource: KarmadaResource, Name: karmadaKind, Need: Optional, Custom: true,
		Versions: []Version{{Name: "v1alpha1", keep: keeping(karmadaFrom)}},
	},
	{
		Resource: MultiServiceResource, Name: "MultiClusterService", Need: Optional, Custom: true,
		Versions:    []Version{{Name: "v1", keep: keeping(multiServiceFrom)}, {Name: "v1beta1", keep: keeping(multiServiceFrom)}},
		Annotations: multiServiceNames,
	},
	{
		Resource: MultiIngressResource, Name: "MultiClusterIngress", Need: Optional, Custom: true,
		Versions:    []Version{{Name: "v1", keep: keeping(multiIngressFrom)}, {Name: "v1beta1", keep: keeping(multiIngressFrom)}},
		Annotations: multiIngressNames,
	},
	{
		Resource: PropertyResource, Name: "ClusterProperty", Need: Optional, ClusterScoped: true, Custom: true,
		Versions: []Version{{Name: "v1beta1", keep: keeping(propertyFrom)}, {Name: "v1alpha1", keep: keeping(propertyFrom)}},
	},
}

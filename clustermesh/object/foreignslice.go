package object

import (
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// multiclusterManagers are values of endpointslice.kubernetes.io/managed-by, or the domains of such
// values, of systems that copy other clusters' endpoints into this one: strait, Cilium's
// EndpointSlice synchronisation, Karmada's dispatch, Submariner's Lighthouse, Liqo's reflection, and
// Azure's Fleet Manager.
var multiclusterManagers = []string{
	SliceManager, "endpointslice-mesh-controller.cilium.io", "karmada.io", "submariner.io", "liqo.io", "networking.fleet.azure.com",
}

// sourceLabels are labels that only copies of another cluster's endpoints have. The first two are of
// the MCS API (KEP-1645). The controller of EndpointSlices copies the labels of a Service to its
// slices, so those by which Services are exported are not here.
var sourceLabels = []string{
	mcsv1beta1.LabelServiceName, mcsv1beta1.LabelSourceCluster,
	"lighthouse.submariner.io/sourceCluster", "mirror.linkerd.io/mirrored-service", "services.clusternet.io/multi-cluster-service-name",
}

// sourceAnnotation is Karmada's name of the cluster that an EndpointSlice was copied from.
const sourceAnnotation = "endpointslice.karmada.io/provision-cluster"

// ofOtherCluster reports whether a slice lists endpoints of another cluster, by what the system wrote
// on it that put it here. Its nodeNames are names of that cluster's nodes.
func ofOtherCluster(s *discoveryv1.EndpointSlice) bool {
	for _, key := range sourceLabels {
		if s.Labels[key] != "" {
			return true
		}
	}
	manager := s.Labels[discoveryv1.LabelManagedBy]
	for _, m := range multiclusterManagers {
		if manager == m || strings.HasSuffix(manager, "."+m) {
			return true
		}
	}
	return s.Annotations[sourceAnnotation] != ""
}

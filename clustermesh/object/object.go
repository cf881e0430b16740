// Package object turns Kubernetes objects into the vocabulary of package clustermesh: nodes, exports and
// endpoints of one cluster, and what is wrong with the objects.
//
// Inputs are Node, Service, EndpointSlice and ServiceExport objects; output is clustermesh.Local. Pure:
// it must not know where objects come from (a directory of YAML or an API server), nor the clusterset.
package object

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
)

// Objects are the objects of one cluster, each at most once by kind, namespace and name. Read, never
// changed.
type Objects struct {
	Nodes          []*corev1.Node
	Services       []*corev1.Service
	EndpointSlices []*discoveryv1.EndpointSlice
	// Exports in v1beta1; v1alpha1 has the same schema.
	Exports []*mcsv1beta1.ServiceExport
}

// Local says what the objects mean for the clusterset. Only Services with a ServiceExport of the same
// namespace and name count, with their endpoints (KEP-1645). Whatever is wrong becomes a Problem that
// names object and field; the rest goes on. The result is sorted and does not depend on the order of
// the objects.
//
// An export without a creation time counts as created at 0, the oldest of all: it wins conflicts. An API
// server always sets the time; in a hand-written file it may be missing.
func Local(objs Objects) clustermesh.Local {
	var r report
	nodes := readNodes(objs.Nodes, &r)
	exports := readExports(objs.Exports, objs.Services, &r)
	endpoints := readSlices(objs.EndpointSlices, exports, nodes, &r)
	return clustermesh.Local{
		Nodes:     nodes,
		Exports:   exports,
		Endpoints: endpoints,
		Problems:  clustermesh.SortProblems(r.problems),
	}
}

// Name is how Problems name an object: "Service default/serve", or "Node n1" where namespace is empty.
func Name(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// barredNamespaces never leave their cluster: their Services are the cluster's own machinery.
var barredNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// barred reports Services that must not be exported whatever ServiceExports say. default/kubernetes is
// every cluster's own API server.
func barred(s clustermesh.ServiceName) bool {
	return slices.Contains(barredNamespaces, s.Namespace) ||
		s == clustermesh.ServiceName{Namespace: "default", Name: "kubernetes"}
}

// report collects problems.
type report struct{ problems []clustermesh.Problem }

// on returns the problems of one object.
func (r *report) on(kind, namespace, name string) *objectReport {
	return &objectReport{r, Name(kind, namespace, name)}
}

// objectReport adds problems of one object; field paths are formats.
type objectReport struct {
	report *report
	object string
}

func (o *objectReport) problem(field, message, try string) {
	o.report.problems = append(o.report.problems, clustermesh.Problem{
		Object: o.object, Field: field, Message: message, Try: try,
	})
}

func (o *objectReport) warning(field, message, try string) {
	o.report.problems = append(o.report.problems, clustermesh.Problem{
		Object: o.object, Field: field, Message: message, Try: try, Warning: true,
	})
}

// at writes a field path: at("spec.ports[%d].port", 2).
func at(path string, index ...any) string { return fmt.Sprintf(path, index...) }

// deref returns what p points to, or the default.
func deref[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

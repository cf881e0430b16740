// Package object turns Kubernetes objects into the vocabulary of package clustermesh: nodes, exports, global
// services and endpoints of one cluster, and what is wrong with the objects.
//
// Inputs are Node, Service, EndpointSlice, ServiceExport and ServiceImport objects; output is clustermesh.Local. Pure:
// it must not know where objects come from (a directory of YAML or an API server), nor the clusterset.
package object

import (
	"cmp"
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
	// Aliases are objects of other groups that mean the same. Of two exports of one Service ours counts.
	Aliases        []Alias
	ServiceImports []*mcsv1beta1.ServiceImport
	// Namespaces are the names of those that exist; nil where every namespace counts as existing.
	Namespaces []string
	Config     Config
}

// Config is what Local depends on besides the objects.
type Config struct {
	// BarredPatterns are patterns of namespaces that take no part; see clustermesh.Barred.
	BarredPatterns []string
}

// Local says what the objects mean for the clusterset. Only Services with a ServiceExport of the same
// namespace and name count, with their endpoints (KEP-1645), and those that are global by annotation.
// Whatever is wrong becomes a Problem that names object and field; the rest goes on. The result is sorted and
// does not depend on the order of the objects.
//
// What strait itself wrote is never read back as the cluster's own: derived Services are neither exported nor
// global, they only say which addresses the imports have; their EndpointSlices are nobody's endpoints.
//
// An export without a creation time counts as created at 0, the oldest of all: it wins conflicts. An API
// server always sets the time; in a hand-written file it may be missing.
func Local(objs Objects) clustermesh.Local {
	l := newReader(objs)
	out := clustermesh.Local{Allocations: l.readAllocations(), Globals: l.readGlobals()}
	out.Nodes, out.NodePrefixes = readNodes(objs.Nodes, &l.report)
	out.Exports, out.ExportStatus = l.readExports(objs)
	wanted := map[clustermesh.ServiceName]bool{}
	for _, e := range out.Exports {
		wanted[e.Service] = true
	}
	for _, g := range out.Globals {
		wanted[g.Service] = true
	}
	out.Endpoints = readSlices(objs.EndpointSlices, wanted, out.Nodes, &l.report)
	for i := range out.Exports {
		e := &out.Exports[i]
		e.Families = readFamilies(l.services[e.Service], endpointsOf(out.Endpoints, e.Service))
	}
	if objs.Namespaces != nil {
		out.Namespaces = slices.Clone(objs.Namespaces)
		slices.Sort(out.Namespaces)
		out.Namespaces = slices.Compact(out.Namespaces)
	}
	l.importProblems(objs)
	out.Problems = clustermesh.SortProblems(l.report.problems)
	return out
}

// reader reads the objects of one cluster.
type reader struct {
	report report
	barred clustermesh.Barred
	// services are by name, sorted the same ones in order.
	services map[clustermesh.ServiceName]*corev1.Service
	sorted   []*corev1.Service
}

func newReader(objs Objects) *reader {
	l := &reader{barred: clustermesh.Barred(objs.Config.BarredPatterns), services: make(map[clustermesh.ServiceName]*corev1.Service, len(objs.Services))}
	for _, s := range objs.Services {
		if name := (clustermesh.ServiceName{Namespace: s.Namespace, Name: s.Name}); l.services[name] == nil {
			l.services[name] = s
			l.sorted = append(l.sorted, s)
		}
	}
	slices.SortFunc(l.sorted, func(a, b *corev1.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return l
}

// endpointsOf returns the part of a sorted list that belongs to a service.
func endpointsOf(sorted []clustermesh.Endpoint, s clustermesh.ServiceName) []clustermesh.Endpoint {
	from, _ := slices.BinarySearchFunc(sorted, s, func(e clustermesh.Endpoint, s clustermesh.ServiceName) int { return e.Service.Compare(s) })
	to := from
	for to < len(sorted) && sorted[to].Service == s {
		to++
	}
	return sorted[from:to]
}

// Name is how Problems name an object: "Service default/serve", or "Node n1" where namespace is empty.
func Name(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
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

// Package object turns Kubernetes objects into the vocabulary of package clustermesh: nodes,
// exports, global services and endpoints of one cluster, and what is wrong with the objects.
//
// Inputs are objects of the kinds in the table Kinds; outputs are clustermesh.Local, the node's
// Pods and the cluster's Identity. Pure: it must not know where objects come from (a directory of
// YAML or an API server), nor the clusterset.
package object

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/internal/problem"
)

// Objects is what is kept of the objects of one cluster, each at most once by kind, namespace and
// name. Kind.Keep makes them. Local, ReadPods and ReadIdentity read them and never change them.
type Objects struct {
	Nodes          []*Node
	Services       []*Service
	EndpointSlices []*Slice
	Exports        []*Export
	// Aliases are objects of other groups that mean the same as Exports. If a Service has both, the
	// Export counts.
	Aliases        []*Alias
	ServiceImports []*Import
	Namespaces     []*Namespace
	Pods           []*Pod
	Properties     []*Property
	Policies       []*Policy
	MultiServices  []*MultiService
	MultiIngresses []*MultiIngress
	// All names the resources that are listed completely. There may be more objects of the others:
	// without NamespaceResource, every namespace counts as existing.
	All map[string]bool
	// Unread reports whether an object, named as in Problems, may exist although it is not here,
	// because what holds it cannot be read. That is a Problem already. Nil means that there is no
	// such object.
	Unread func(name string) bool
	Config Config
}

// Insert adds an object.
func (o *Objects) Insert(k Kept) { k.insert(o) }

// Config is what Local depends on besides the objects.
type Config struct {
	// Cluster is the cluster's id. Empty means that the ClusterProperty has it; without one,
	// policies share nothing.
	Cluster clustermesh.ClusterName
	// Policies are ServicePolicies of the daemon's configuration. One of the same name among the
	// objects does not count.
	Policies []policy.Policy
	// ReadOnly: the objects are files, and there is no API server to write to, so the cluster gets no
	// mirrors. The writer of the files is trusted with every address.
	ReadOnly bool
	// BarredPatterns are patterns of namespaces that take no part; see clustermesh.Barred.
	BarredPatterns []string
	// Namespace is strait's own; empty means clustermesh.DefaultNamespace. Its annotation
	// AnnotationDrain drains the cluster.
	Namespace string
	// DrainCordoned drains Nodes that are cordoned.
	DrainCordoned bool
	// Tunnels: packets to other clusters' pods take the nodes' routes into tunnels.
	Tunnels bool
	// LocalByDefault keeps the Services of a namespace in the cluster unless its annotation
	// clustermesh.cilium.io/global is "true". Cilium has this as
	// clustermesh-default-global-namespace=false.
	LocalByDefault bool
	// NodePrefixes are those of the reader's own node in the daemon's configuration.
	NodePrefixes []netip.Prefix
	// Endpoints are the ranges for endpoints that name no node; nil allows every address.
	Endpoints []netip.Prefix
}

// Local returns what the objects mean for the clusterset. Two sorts of Services count, with their
// endpoints: those that are exported, by a ServiceExport of the same namespace and name (KEP-1645),
// an alias of one, a ServicePolicy or a MultiClusterService of GKE, and those that are global, by
// annotation or policy. Whatever is wrong becomes a Problem that names the object and the field;
// the rest is used. The result is sorted and does not depend on the order of the objects.
//
// What strait itself wrote is never read back as the cluster's own. Derived Services are neither
// exported nor global: they only show which addresses the imports have. Their EndpointSlices are
// ignored.
//
// An export without a creation time counts as created at 0, the oldest of all: it wins conflicts.
// An API server always sets the time; in a hand-written file it may be missing.
func Local(objs Objects) clustermesh.Local {
	l := newReader(objs)
	l.readPolicies(objs)
	out := clustermesh.Local{Allocations: l.readAllocations(), Globals: l.readGlobals()}
	out.ClusterIPs = l.allClusterIPs()
	nodes := readNodes(objs.Nodes, objs.Config, out.ClusterIPs, &l.report)
	out.Nodes, out.NodePrefixes, out.NodeClusterIPs, out.NodeKeys = nodes.list, nodes.prefixes, nodes.clusterIPs, nodes.keys
	l.readGKE(objs, out.Nodes)
	out.Exports, out.ExportStatus = l.readExports(objs)
	out.Mirrors, out.Config = l.mirrorsByPolicy(), l.config()
	out.Shares = l.shares()
	wanted := make(map[clustermesh.ServiceName][]clustermesh.ServicePort, len(out.Exports)+len(out.Globals))
	for _, e := range slices.Concat(out.Exports, out.Mirrors) {
		wanted[e.Service] = e.Ports
	}
	for _, g := range out.Globals {
		wanted[g.Service] = g.Ports
	}
	out.Endpoints = readSlices(objs.EndpointSlices, wanted, out.Nodes, newGround(objs, nodes, l.services), &l.report)
	for _, list := range [][]clustermesh.Export{out.Exports, out.Mirrors} {
		for i := range list {
			e := &list[i]
			e.Families, e.FamiliesDeclared = readFamilies(l.service(e.Service), endpointsOf(out.Endpoints, e.Service))
		}
	}
	out.NodesKnown, out.OwnNamespaces = objs.All[NodeResource], l.ownNamespaces(objs)
	if objs.All[NamespaceResource] {
		out.Namespaces = make([]string, 0, len(objs.Namespaces))
		for _, n := range objs.Namespaces {
			out.Namespaces = append(out.Namespaces, n.Name)
		}
		slices.Sort(out.Namespaces)
		out.Namespaces = slices.Compact(out.Namespaces)
	}
	out.Drain, out.Accept = l.readClusterDrain(objs), l.readAccept(objs.Namespaces)
	out.LocalNamespaces = l.local
	l.importProblems(objs)
	out.Problems = clustermesh.SortProblems(l.report.problems)
	return out
}

// ownNamespaces returns the namespaces of which the cluster has objects that strait did not make of
// imports.
func (l *reader) ownNamespaces(objs Objects) (out []string) {
	for _, n := range objs.Namespaces {
		out = append(out, n.Name)
	}
	for _, s := range l.services {
		if s.derivedFor == "" {
			out = append(out, s.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// readClusterDrain returns whether the cluster is drained by strait's own Namespace.
func (l *reader) readClusterDrain(objs Objects) *clustermesh.Drain {
	for _, n := range objs.Namespaces {
		if value, ok := n.annotations[AnnotationDrain]; ok && n.Name == cmp.Or(objs.Config.Namespace, clustermesh.DefaultNamespace) {
			return readDrain(note{AnnotationDrain, value, l.report.on("Namespace", "", n.Name)})
		}
	}
	return nil
}

// reader reads the objects of one cluster.
type reader struct {
	report report
	barred clustermesh.Barred
	local  clustermesh.LocalNamespaces
	// services are sorted, each name once.
	services []*Service
	// own is the cluster's id, empty if unknown.
	own clustermesh.ClusterName
	// readOnly is as in Config.
	readOnly bool
	// policies are those in force, the oldest first.
	policies []*rule
	gke      GKE
}

// newReader sorts the Services. If several have the same name, the first counts.
func newReader(objs Objects) *reader {
	l := &reader{barred: clustermesh.Barred(objs.Config.BarredPatterns), services: slices.Clone(objs.Services)}
	l.report.unread = objs.Unread
	l.local = clustermesh.LocalNamespaces{Marked: localNamespaces(objs.Namespaces, &l.report), Others: objs.Config.LocalByDefault}
	l.readOnly = objs.Config.ReadOnly
	l.own = cmp.Or(objs.Config.Cluster, clustermesh.ClusterName(ReadIdentity(objs, "").Property))
	slices.SortStableFunc(l.services, func(a, b *Service) int { return a.service().Compare(b.service()) })
	l.services = slices.CompactFunc(l.services, func(a, b *Service) bool { return a.ID == b.ID })
	return l
}

// service returns the Service of a name, or nil.
func (l *reader) service(name clustermesh.ServiceName) *Service {
	i, found := slices.BinarySearchFunc(l.services, name, func(s *Service, n clustermesh.ServiceName) int { return s.service().Compare(n) })
	if !found {
		return nil
	}
	return l.services[i]
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

// Name returns how Problems name an object: "Service default/serve", or "Node n1" if namespace is
// empty.
func Name(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// report collects problems.
type report struct {
	problems []clustermesh.Problem
	unread   func(name string) bool // see Objects
}

// missing reports whether an object that is not here does not exist, which is worth a Problem.
func (r *report) missing(kind, namespace, name string) bool {
	return r.unread == nil || !r.unread(Name(kind, namespace, name))
}

// on returns a report for the problems of one object.
func (r *report) on(kind, namespace, name string) *objectReport {
	return &objectReport{r, kind, namespace, name}
}

// objectReport adds problems of one object to a report.
type objectReport struct {
	report                *report
	kind, namespace, name string
}

func (o *objectReport) problem(code problem.Code, field, message, try string) {
	o.report.problems = append(o.report.problems, problem.Object(o.kind, o.namespace, o.name).Problem(clustermesh.Problem{
		Code: code, Field: field, Message: message, Try: try,
	}))
}

func (o *objectReport) warning(code problem.Code, field, message, try string) {
	o.report.problems = append(o.report.problems, problem.Object(o.kind, o.namespace, o.name).Problem(clustermesh.Problem{
		Code: code, Field: field, Message: message, Try: try, Warning: true,
	}))
}

// at formats a field path: at("spec.ports[%d].port", 2).
func at(path string, index ...any) string { return fmt.Sprintf(path, index...) }

// orNil returns nil for an empty list.
func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// deref returns what p points to, or the default if p is nil.
func deref[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

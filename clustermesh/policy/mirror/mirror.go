// Package mirror decides which mirrors a cluster should have by its ServicePolicies, and what to write for
// that.
//
// Inputs are policies, and the Services and EndpointSlices of some clusters; outputs are objects, why a
// Service is left out, and ordered writes. Pure. It must not know where objects come from, nor who
// writes them.
package mirror

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/tld"
)

// Labels and annotations of mirrors, besides those that mark them as strait's.
const (
	// LabelPolicy has the name of the policy.
	LabelPolicy = "strait.io/policy"
	// LabelSet identifies the set of policies that mirrors are of.
	LabelSet = object.LabelPolicySet
	// LabelSource, of an EndpointSlice, is the cluster that its endpoints are in.
	LabelSource = "multicluster.kubernetes.io/source-cluster"
	// AnnotationFrom, of a Service, lists its sources, as in us-east/shop/cart.
	AnnotationFrom = "strait.io/from"
	// AnnotationCopied, of a Service, lists the keys of the annotations that are copied. Others, which
	// the controller of a load balancer may have written, stay.
	AnnotationCopied = "strait.io/copied"
)

// Cluster is what a cluster's API server has.
type Cluster struct {
	ID         string
	Services   []*corev1.Service
	Slices     []*discoveryv1.EndpointSlice
	Namespaces map[string]bool
	// Offered are the Services that the cluster itself shares, by policy, if it selects them. Nil means
	// that a policy's own terms select from Services.
	Offered map[string][]*corev1.Service
	// Entered are the ranges of its ClusterIPs that can be called from where the mirrors are. They count
	// if Offered is not nil; otherwise all can be called.
	Entered []netip.Prefix
	// Exported are the Services that the cluster shares as imports, by policy.
	Exported map[string][]clustermesh.ServiceName

	// Taken are names, as NAMESPACE/NAME, that Services have which are no mirrors, and which Services
	// does not list.
	Taken map[string]bool

	// Barred are namespaces that get no mirrors, besides those that never do.
	Barred clustermesh.Barred

	// sources are the Slices that strait did not write, by the name of their Service; see index.
	sources map[name][]*discoveryv1.EndpointSlice
}

// name is that of an object with a namespace.
type name struct{ namespace, name string }

func (n name) String() string { return n.namespace + "/" + n.name }

func (n name) compare(o name) int {
	return cmp.Or(strings.Compare(n.namespace, o.namespace), strings.Compare(n.name, o.name))
}

func nameOf(o metav1.Object) name { return name{o.GetNamespace(), o.GetName()} }

// index sorts the Slices by their Services: there may be thousands of each.
func (c *Cluster) index() {
	c.sources = map[name][]*discoveryv1.EndpointSlice{}
	for _, s := range c.Slices {
		if s.Labels[discoveryv1.LabelManagedBy] != object.SliceManager {
			of := name{s.Namespace, s.Labels[discoveryv1.LabelServiceName]}
			c.sources[of] = append(c.sources[of], s)
		}
	}
}

// Mirrored is a Service that a cluster should have, with its EndpointSlices.
type Mirrored struct {
	Service *corev1.Service
	Slices  []*discoveryv1.EndpointSlice
	// From are the ids of the clusters that have it, the one with the oldest Service first.
	From []string
}

// Skipped is a Service that a policy selects, and that is left out.
type Skipped struct {
	Policy  string
	Source  string // CLUSTER/NAMESPACE/NAME
	Reason  string
	Message string
}

// Plan is what a cluster should have by some policies.
type Plan struct {
	// Namespaces are to be created.
	Namespaces []string
	Mirrors    []Mirrored // sorted by namespace and name
	Skipped    []Skipped
	// Imported counts, by policy, the Services of other clusters that are imported.
	Imported map[string]int
	// Policies are the names of those that the plan was made by.
	Policies map[string]bool
}

// target is a Service that some sources become.
type target struct {
	namespace, name string
	policy          policy.Policy
	sources         []from
	ports           []corev1.ServicePort // see mergePorts
}

// from is a Service with its cluster.
type from struct {
	cluster *Cluster
	svc     *corev1.Service
	merged  map[string]int // which port of the target each of its ports is, by name
}

func (f from) String() string { return f.cluster.ID + "/" + f.svc.Namespace + "/" + f.svc.Name }

// Wanted returns what a cluster should have by the policies that mirror, and the namespaces that those
// which import need, made from what all clusters have whose word is known. Set is the value of
// LabelSet. If two policies make different objects of one name, the earlier one counts.
func Wanted(set string, policies []policy.Policy, clusters []Cluster, to Cluster) (p Plan) {
	targets := map[name]*target{}
	p.Policies, p.Imported = map[string]bool{}, map[string]int{}
	clusters = slices.Clone(clusters)
	for i := range clusters {
		clusters[i].index()
	}
	for _, from := range policies {
		from.Spec = policy.WithDefaults(from.Spec)
		if !policy.Reaches(from.Spec, clustermesh.ClusterName(to.ID)) {
			continue
		}
		if from.Spec.As == policy.Import {
			p.imports(from, clusters, to)
		}
		if from.Spec.As != policy.Mirror {
			continue
		}
		p.Policies[from.Name] = true
		for i := range clusters {
			if c := &clusters[i]; c.ID != to.ID && policy.Shares(from.Spec, clustermesh.ClusterName(c.ID)) {
				p.collect(targets, from, c)
			}
		}
	}
	have := make(map[name]*corev1.Service, len(to.Services))
	for _, s := range to.Services {
		have[nameOf(s)] = s
	}
	for _, key := range slices.SortedFunc(maps.Keys(targets), name.compare) {
		p.make(set, targets[key], to, have[key])
	}
	slices.Sort(p.Namespaces)
	p.Namespaces = slices.Compact(p.Namespaces)
	return p
}

func (p *Plan) skip(by string, f from, reason, format string, args ...any) {
	p.Skipped = append(p.Skipped, Skipped{by, f.String(), reason, fmt.Sprintf(format, args...)})
}

// imports adds the namespaces that the imports of a policy need, if it creates them. The imports
// themselves follow from the exports, in every cluster that has the namespace.
func (p *Plan) imports(by policy.Policy, clusters []Cluster, to Cluster) {
	selector, seen := policy.SelectorOf(by.Spec, false), map[clustermesh.ServiceName]bool{}
	for i := range clusters {
		c := &clusters[i]
		if c.ID == to.ID || !policy.Shares(by.Spec, clustermesh.ClusterName(c.ID)) {
			continue
		}
		for _, s := range c.Exported[by.Name] {
			if !selector.Selects(s.Namespace, s.Name, nil) {
				continue
			}
			source := c.ID + "/" + s.String()
			if why := to.Barred.Why(s); why != "" {
				p.Skipped = append(p.Skipped, Skipped{by.Name, source, policy.Barred, fmt.Sprintf("cluster %s: %s", to.ID, why)})
			} else if why := p.namespace(by, s.Namespace, to); why != "" {
				p.Skipped = append(p.Skipped, Skipped{by.Name, source, policy.NamespaceMissing, why})
			} else if !seen[s] {
				seen[s] = true
				p.Imported[by.Name]++
			}
		}
	}
}

// namespace returns why what a policy makes cannot be in a namespace; empty if it can. The plan creates
// the namespace if the policy allows that.
func (p *Plan) namespace(by policy.Policy, ns string, to Cluster) (why string) {
	switch {
	case to.Namespaces[ns]:
		return ""
	case !by.Spec.CreateNamespace:
		return fmt.Sprintf("cluster %s has no namespace %s; create it, or write createNamespace: true", to.ID, ns)
	case tld.Is(ns) && !names(by.Spec, ns):
		return fmt.Sprintf("%s is a top-level domain of the public DNS: a namespace of that name would answer for names outside, so cluster %s gets none by another cluster's word; create it, or name it in the policy", ns, to.ID)
	}
	p.Namespaces = append(p.Namespaces, ns)
	return ""
}

// names reports whether the policy itself names a namespace. Otherwise, its name comes from another cluster.
func names(s policy.Spec, ns string) bool {
	if s.Namespace != "{namespace}" {
		return s.Namespace == ns
	}
	return slices.ContainsFunc(s.Select, func(t policy.Term) bool { return slices.Contains(t.Namespaces, ns) })
}

// collect adds what a policy selects of a cluster.
func (p *Plan) collect(targets map[name]*target, by policy.Policy, c *Cluster) {
	s := by.Spec
	for _, svc := range c.selected(by) {
		f := from{cluster: c, svc: svc}
		if reason, message := refused(svc); reason != "" {
			p.skip(by.Name, f, reason, "%s", message)
			continue
		}
		if s.Endpoints == policy.ClusterIP {
			if reason, message := f.noClusterIP(); reason != "" {
				p.skip(by.Name, f, reason, "%s", message)
				continue
			}
		}
		key := name{policy.Expand(s.Namespace, svc.Name, svc.Namespace, c.ID), policy.Expand(s.Name, svc.Name, svc.Namespace, c.ID)}
		if bad := slices.Concat(validation.IsDNS1123Label(key.namespace), validation.IsDNS1035Label(key.name)); len(bad) > 0 {
			p.skip(by.Name, f, policy.InvalidName, "%s: %s", key, bad[0])
			continue
		}
		t := targets[key]
		if t == nil {
			t = &target{namespace: key.namespace, name: key.name, policy: by}
			targets[key] = t
		}
		if !agree(t.policy, by) {
			p.skip(by.Name, f, policy.Conflict, "%s %s makes %s already, differently", policy.Kind, t.policy.Name, key)
			continue
		}
		if !slices.ContainsFunc(t.sources, func(g from) bool { return g.String() == f.String() }) {
			t.sources = append(t.sources, f)
		}
	}
}

// selected returns the Services that a policy selects. Of those that a cluster offers, it knows not all
// labels; that they fit is the cluster's word.
func (c *Cluster) selected(by policy.Policy) []*corev1.Service {
	from, labels := c.Services, true
	if c.Offered != nil {
		from, labels = c.Offered[by.Name], false
	}
	selector := policy.SelectorOf(by.Spec, labels)
	return slices.DeleteFunc(slices.Clone(from), func(svc *corev1.Service) bool {
		return !selector.Selects(svc.Namespace, svc.Name, svc.Labels) || !source(svc)
	})
}

// source reports whether a Service can be one: it is the cluster's own, and no machinery.
func source(svc *corev1.Service) bool {
	return svc.Labels[object.LabelManagedBy] != object.ManagedBy && svc.DeletionTimestamp == nil &&
		!policy.OfImport(svc.OwnerReferences) && !policy.Mirrored(svc.Labels)
}

// refused returns why a selected Service cannot be a source; empty if it can.
func refused(svc *corev1.Service) (reason, message string) {
	if why := (clustermesh.Barred{}).Why(clustermesh.ServiceName{Namespace: svc.Namespace, Name: svc.Name}); why != "" {
		return policy.Barred, why
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return policy.ExternalName, "its type is ExternalName, so it has no endpoints"
	}
	return "", ""
}

// agree reports whether two policies make the same object of the same sources.
func agree(p, q policy.Policy) bool {
	a, b := p.Spec, q.Spec
	return a.As == b.As && a.Endpoints == b.Endpoints && a.ExposeAs == b.ExposeAs && reflect.DeepEqual(a.Copy, b.Copy)
}

// make adds the objects of a target, unless the cluster has a Service of that name that is not ours, or
// no such namespace.
func (p *Plan) make(set string, t *target, to Cluster, have *corev1.Service) {
	slices.SortStableFunc(t.sources, func(a, b from) int {
		return cmp.Or(a.svc.CreationTimestamp.Compare(b.svc.CreationTimestamp.Time), strings.Compare(a.cluster.ID, b.cluster.ID), strings.Compare(a.String(), b.String()))
	})
	by, first := t.policy.Name, t.sources[0]
	why := to.Barred.Why(clustermesh.ServiceName{Namespace: t.namespace, Name: t.name})
	switch {
	case why != "":
		p.skip(by, first, policy.Barred, "cluster %s: %s", to.ID, why)
		return
	case have != nil && !Ours(set, have.Labels), have == nil && to.Taken[name{t.namespace, t.name}.String()]:
		p.skip(by, first, policy.TargetExists, "Service %s/%s of cluster %s is not a mirror, and stays as it is", t.namespace, t.name, to.ID)
		return
	}
	if why := p.namespace(t.policy, t.namespace, to); why != "" {
		p.skip(by, first, policy.NamespaceMissing, "%s", why)
		return
	}
	t.mergePorts()
	m := Mirrored{Service: t.service(set)}
	for _, f := range t.sources {
		if !slices.Contains(m.From, f.cluster.ID) {
			m.From = append(m.From, f.cluster.ID)
		}
		if t.policy.Spec.Endpoints == policy.ClusterIP {
			m.Slices = append(m.Slices, t.addresses(set, f)...)
		} else {
			m.Slices = append(m.Slices, t.pods(set, f)...)
		}
	}
	p.Mirrors = append(p.Mirrors, m)
}

// namespace returns a namespace to create. It is never deleted, because others may have put something
// into it.
func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{object.LabelManagedBy: object.ManagedBy}}}
}

// Sign notes in the namespaces among objects to create which program creates them.
func Sign(ops []written.Op, manager string) []written.Op {
	for _, o := range ops {
		if ns, is := o.Object.(*corev1.Namespace); is {
			ns.Annotations = map[string]string{AnnotationFrom: manager}
		}
	}
	return ops
}

// Ours reports whether labels are those of a set's mirrors.
func Ours(set string, labels map[string]string) bool {
	return labels[object.LabelManagedBy] == object.ManagedBy && labels[LabelSet] == set
}

// service makes the Service of a target. Where its sources differ, the oldest counts.
func (t *target) service(set string) *corev1.Service {
	first, s := t.sources[0].svc, t.policy.Spec
	labels := policy.Copied(first.Labels, s.Copy.Labels, policy.Portable)
	maps.Copy(labels, map[string]string{object.LabelManagedBy: object.ManagedBy, LabelPolicy: t.policy.Name, LabelSet: set})
	annotations := policy.CopiedAnnotations(first.Annotations, s.Copy.Annotations)
	if len(annotations) > 0 {
		annotations[AnnotationCopied] = strings.Join(slices.Sorted(maps.Keys(annotations)), ",")
	}
	var sources []string
	for _, f := range t.sources {
		sources = append(sources, f.String())
	}
	annotations[AnnotationFrom] = strings.Join(sources, ",")
	out := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.name, Labels: labels, Annotations: annotations},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceType(s.ExposeAs), SessionAffinity: cmp.Or(first.Spec.SessionAffinity, corev1.ServiceAffinityNone), SessionAffinityConfig: first.Spec.SessionAffinityConfig,
			PublishNotReadyAddresses: first.Spec.PublishNotReadyAddresses, Ports: t.ports,
		},
	}
	if first.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Spec.ClusterIP, out.Spec.Type = corev1.ClusterIPNone, corev1.ServiceTypeClusterIP
	}
	return out
}

// Package mirror says which mirrors a cluster should have by its ServicePolicies, and what to write for
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
)

// Labels and annotations of mirrors, besides those that say that they are strait's.
const (
	// LabelPolicy has the name of the policy.
	LabelPolicy = "strait.io/policy"
	// LabelSet tells the mirrors of one set of policies from those of another.
	LabelSet = "strait.io/policy-set"
	// LabelSource, of an EndpointSlice, is the cluster that its endpoints are in.
	LabelSource = "multicluster.kubernetes.io/source-cluster"
	// AnnotationFrom, of a Service, lists its sources, as in us-east/shop/cart.
	AnnotationFrom = "strait.io/from"
)

// Cluster is what a cluster's API server has.
type Cluster struct {
	ID         string
	Services   []*corev1.Service
	Slices     []*discoveryv1.EndpointSlice
	Namespaces map[string]bool
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
}

// target is a Service that some sources become.
type target struct {
	namespace, name string
	policy          policy.Policy
	sources         []from
}

// from is a Service with its cluster.
type from struct {
	cluster *Cluster
	svc     *corev1.Service
}

func (f from) String() string { return f.cluster.ID + "/" + f.svc.Namespace + "/" + f.svc.Name }

// Wanted returns what a cluster should have by the policies that mirror, made from what all clusters
// have whose word is known. Set is the value of LabelSet. If two policies make different objects of
// one name, the earlier one counts.
func Wanted(set string, policies []policy.Policy, clusters []Cluster, to Cluster) (p Plan) {
	targets := map[[2]string]*target{}
	for _, from := range policies {
		from.Spec = from.Spec.WithDefaults()
		if from.Spec.As != policy.Mirror || !from.Spec.Reaches(clustermesh.ClusterName(to.ID)) {
			continue
		}
		for i := range clusters {
			if c := &clusters[i]; c.ID != to.ID && from.Spec.Shares(clustermesh.ClusterName(c.ID)) {
				p.collect(targets, from, c)
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(targets), func(a, b [2]string) int { return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1])) }) {
		p.make(set, targets[key], to)
	}
	slices.Sort(p.Namespaces)
	p.Namespaces = slices.Compact(p.Namespaces)
	return p
}

func (p *Plan) skip(by string, f from, reason, format string, args ...any) {
	p.Skipped = append(p.Skipped, Skipped{by, f.String(), reason, fmt.Sprintf(format, args...)})
}

// collect adds what a policy selects of a cluster.
func (p *Plan) collect(targets map[[2]string]*target, by policy.Policy, c *Cluster) {
	s, selector := by.Spec, by.Spec.Selector()
	for _, svc := range c.Services {
		if !selector.Selects(svc.Namespace, svc.Name, svc.Labels) || !source(svc) {
			continue
		}
		f := from{c, svc}
		if reason, message := refused(svc); reason != "" {
			p.skip(by.Name, f, reason, "%s", message)
			continue
		}
		if s.Endpoints == policy.ClusterIP && svc.Spec.ClusterIP == corev1.ClusterIPNone {
			p.skip(by.Name, f, policy.NotSupported, "it is headless, so there is no ClusterIP; write endpoints: pods")
			continue
		}
		key := [2]string{policy.Expand(s.Namespace, svc.Name, svc.Namespace, c.ID), policy.Expand(s.Name, svc.Name, svc.Namespace, c.ID)}
		if bad := slices.Concat(validation.IsDNS1123Label(key[0]), validation.IsDNS1035Label(key[1])); len(bad) > 0 {
			p.skip(by.Name, f, policy.InvalidName, "%s/%s: %s", key[0], key[1], bad[0])
			continue
		}
		t := targets[key]
		if t == nil {
			t = &target{namespace: key[0], name: key[1], policy: by}
			targets[key] = t
		}
		if !agree(t.policy, by) {
			p.skip(by.Name, f, policy.Conflict, "%s %s makes %s/%s already, differently", policy.Kind, t.policy.Name, key[0], key[1])
			continue
		}
		if !slices.ContainsFunc(t.sources, func(g from) bool { return g == f }) {
			t.sources = append(t.sources, f)
		}
	}
}

// source reports whether a Service can be one: it is the cluster's own, and no machinery.
func source(svc *corev1.Service) bool {
	return svc.Labels[object.LabelManagedBy] != object.ManagedBy && svc.DeletionTimestamp == nil && !policy.Mirrored(svc.Labels)
}

// refused says why a selected Service cannot be a source; empty if it can.
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
func (p *Plan) make(set string, t *target, to Cluster) {
	slices.SortStableFunc(t.sources, func(a, b from) int {
		return cmp.Or(a.svc.CreationTimestamp.Compare(b.svc.CreationTimestamp.Time), strings.Compare(a.cluster.ID, b.cluster.ID), strings.Compare(a.String(), b.String()))
	})
	name, first := t.policy.Name, t.sources[0]
	have := slices.IndexFunc(to.Services, func(s *corev1.Service) bool { return s.Namespace == t.namespace && s.Name == t.name })
	switch {
	case have >= 0 && !Ours(set, to.Services[have].Labels):
		p.skip(name, first, policy.TargetExists, "Service %s/%s of cluster %s is not a mirror, and stays as it is", t.namespace, t.name, to.ID)
		return
	case !to.Namespaces[t.namespace] && !t.policy.Spec.CreateNamespace:
		p.skip(name, first, policy.NamespaceMissing, "cluster %s has no namespace %s; create it, or set createNamespace", to.ID, t.namespace)
		return
	case !to.Namespaces[t.namespace]:
		p.Namespaces = append(p.Namespaces, t.namespace)
	}
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

// Ours reports whether labels are those of a set's mirrors.
func Ours(set string, labels map[string]string) bool {
	return labels[object.LabelManagedBy] == object.ManagedBy && labels[LabelSet] == set
}

// service makes the Service of a target. Of what its sources say differently, the oldest counts.
func (t *target) service(set string) *corev1.Service {
	first, s := t.sources[0].svc, t.policy.Spec
	labels := policy.Copied(first.Labels, s.Copy.Labels, policy.Portable)
	maps.Copy(labels, map[string]string{object.LabelManagedBy: object.ManagedBy, LabelPolicy: t.policy.Name, LabelSet: set})
	annotations := policy.Copied(first.Annotations, s.Copy.Annotations, func(string) bool { return false })
	var sources []string
	for _, f := range t.sources {
		sources = append(sources, f.String())
	}
	annotations[AnnotationFrom] = strings.Join(sources, ",")
	out := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.name, Labels: labels, Annotations: annotations},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceType(s.ExposeAs), SessionAffinity: first.Spec.SessionAffinity, SessionAffinityConfig: first.Spec.SessionAffinityConfig,
			PublishNotReadyAddresses: first.Spec.PublishNotReadyAddresses,
		},
	}
	if first.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Spec.ClusterIP, out.Spec.Type = corev1.ClusterIPNone, corev1.ServiceTypeClusterIP
	}
	for _, f := range t.sources {
		for _, port := range f.svc.Spec.Ports {
			taken := func(q corev1.ServicePort) bool {
				return q.Name == port.Name || q.Port == port.Port && q.Protocol == port.Protocol
			}
			if !slices.ContainsFunc(out.Spec.Ports, taken) {
				port.NodePort = 0
				out.Spec.Ports = append(out.Spec.Ports, port)
			}
		}
	}
	return out
}

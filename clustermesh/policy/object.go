package policy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Status is what the leader of a cluster writes into the policy of its own API server.
type Status struct {
	// ObservedGeneration is the generation of the spec that this is about.
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Cluster            string `json:"cluster,omitempty"`
	// Selected is how many of the cluster's own Services the policy selects, and Shared how many of
	// these other clusters may use.
	Selected int `json:"selected"`
	Shared   int `json:"shared"`
	// Mirrored is how many mirrors of other clusters' Services the cluster has by the policy, Imported
	// how many imports of theirs, and Joined how many of its own Services get backends by it.
	Mirrored int `json:"mirrored"`
	Imported int `json:"imported"`
	Joined   int `json:"joined"`
	// Skipped lists the first Services that are left out; SkippedMore counts the rest.
	Skipped     []Skipped          `json:"skipped,omitempty"`
	SkippedMore int                `json:"skippedMore,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// Skipped is a Service that a policy selects, and that is left out.
type Skipped struct {
	// Service is its CLUSTER/NAMESPACE/NAME.
	Service string `json:"service"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// DeepCopyObject is that of runtime.Object.
func (p *Policy) DeepCopyObject() runtime.Object { return p.deepCopy() }

// DeepCopyObject is that of runtime.Object.
func (l *List) DeepCopyObject() runtime.Object {
	out := &List{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].deepCopy())
	}
	return out
}

func (p *Policy) deepCopy() *Policy {
	out := &Policy{TypeMeta: p.TypeMeta, ObjectMeta: *p.ObjectMeta.DeepCopy(), Spec: p.Spec, Status: p.Status}
	s := &out.Spec
	s.From, s.To, s.Select = slices.Clone(s.From), slices.Clone(s.To), slices.Clone(s.Select)
	s.Copy = Copy{Labels: slices.Clone(s.Copy.Labels), Annotations: slices.Clone(s.Copy.Annotations)}
	for i, t := range s.Select {
		s.Select[i] = Term{Namespaces: slices.Clone(t.Namespaces), Names: slices.Clone(t.Names), Labels: t.Labels.DeepCopy()}
	}
	out.Status.Skipped = slices.Clone(p.Status.Skipped)
	out.Status.Conditions = nil
	for _, c := range p.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *c.DeepCopy())
	}
	return out
}

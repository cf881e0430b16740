package mirrorer

import (
	"context"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
)

// policies is the resource of ServicePolicies.
var policies = schema.GroupVersionResource{Group: "strait.io", Version: "v1alpha1", Resource: "servicepolicies"}

// writeStatuses writes the status of each policy whose status is another, and returns what is
// refused.
func (m *Mirrorer) writeStatuses(ctx context.Context, v View, made []clustermesh.PolicyResult) (problems []clustermesh.Problem) {
	for _, f := range v.Objects {
		status, ok := f.Status(v.Cluster, resultOf(made, f.Name), time.Now())
		if !ok || reflect.DeepEqual(status, f.Was) {
			continue
		}
		if ctx.Err() != nil || !m.leading() {
			return problems
		}
		if err := m.writeStatus(ctx, f, status); err != nil && ctx.Err() == nil {
			problems = append(problems, failed("patch status of "+policy.Kind+" "+f.Name, err)...)
		}
	}
	return problems
}

// writeStatus applies a status to a policy, unless the policy has changed since it was read: then
// the status is about another spec, and perhaps another policy of its name.
func (m *Mirrorer) writeStatus(ctx context.Context, f policy.Facts, s policy.Status) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	o.SetAPIVersion(policy.APIVersion)
	o.SetKind(policy.Kind)
	o.SetName(f.Name)
	o.SetResourceVersion(f.Version)
	_, err = m.dynamic.Resource(policies).ApplyStatus(ctx, f.Name, o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// mirrors has the policy of each mirror, by namespace and name.
type mirrors map[[2]string]string

func inventory(services []*corev1.Service) mirrors {
	out := mirrors{}
	for _, s := range services {
		out[key(s)] = s.Labels[mirror.LabelPolicy]
	}
	return out
}

func key(s *corev1.Service) [2]string { return [2]string{s.Namespace, s.Name} }

func (m mirrors) has(s *corev1.Service) bool { _, has := m[key(s)]; return has }

// without returns the mirrors that others do not have.
func (m mirrors) without(others mirrors) mirrors {
	out := mirrors{}
	for k, p := range m {
		if _, has := others[k]; !has {
			out[k] = p
		}
	}
	return out
}

// did takes in a write.
func (m mirrors) did(o written.Op) {
	switch {
	case o.Service() == nil:
	case o.Verb == written.Delete:
		delete(m, key(o.Service()))
	default:
		m[key(o.Service())] = o.Service().Labels[mirror.LabelPolicy]
	}
}

// made counts the mirrors by policy.
func (m mirrors) made() map[string]int {
	out := map[string]int{}
	for _, p := range m {
		out[p]++
	}
	return out
}

// resultOf returns the result of a policy, empty if there is none.
func resultOf(results []clustermesh.PolicyResult, policy string) clustermesh.PolicyResult {
	for _, r := range results {
		if r.Policy == policy {
			return r
		}
	}
	return clustermesh.PolicyResult{Policy: policy}
}

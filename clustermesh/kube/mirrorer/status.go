package mirrorer

import (
	"context"
	"errors"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
)

// writeStatuses writes the status of each policy whose status is another, and returns what is
// refused.
func (w *work) writeStatuses(ctx context.Context, v View, made []clustermesh.PolicyResult) (problems []clustermesh.Problem) {
	for _, f := range v.Objects {
		status, ok := f.Status(v.Cluster, resultOf(made, f.Name), time.Now())
		if !ok || reflect.DeepEqual(status, f.Was) {
			continue
		}
		err := w.writeStatus(ctx, f, status)
		if ctx.Err() != nil || errors.Is(err, write.ErrStopped) {
			return problems
		}
		problems = append(problems, write.Refused("patch status of "+policy.Kind+" "+f.Name, err)...)
	}
	return problems
}

// writeStatus applies a status to a policy, unless the policy has changed since it was read: then
// the status is about another spec, and perhaps another policy of its name.
func (w *work) writeStatus(ctx context.Context, f policy.Facts, s policy.Status) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	o.SetName(f.Name)
	o.SetResourceVersion(f.Version)
	_, err = w.Do(ctx, written.Op{Verb: written.ApplyStatus, Kind: written.ServicePolicy, Object: o, Force: true})
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

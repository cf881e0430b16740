package mirrorer

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"strait.io/strait/clustermesh/policy"
)

// TestAPIServerRefuses: the CRD refuses what has no effect with a policy's As, like the validation of
// documents elsewhere, and takes what has.
func TestAPIServerRefuses(t *testing.T) {
	b := newBench(t)
	fields := map[string]func(*policy.Spec){
		"none":            func(*policy.Spec) {},
		"the defaults":    func(s *policy.Spec) { *s = policy.WithDefaults(*s) },
		"name":            func(s *policy.Spec) { s.Name = "far-{name}" },
		"namespace":       func(s *policy.Spec) { s.Namespace = "{namespace}-{cluster}" },
		"createNamespace": func(s *policy.Spec) { s.CreateNamespace = true },
		"endpoints":       func(s *policy.Spec) { s.Endpoints = policy.ClusterIP },
		"exposeAs":        func(s *policy.Spec) { s.ExposeAs = "NodePort" },
		"copy":            func(s *policy.Spec) { s.Copy.Annotations = []string{"team"} },
	}
	for _, as := range []policy.As{"", policy.Import, policy.Mirror, policy.Join} {
		for field, set := range fields {
			if as == policy.Join && field == "the defaults" {
				continue // the API server cannot distinguish a default that is written from another value
			}
			p := policy.Policy{TypeMeta: policy.Type, ObjectMeta: metav1.ObjectMeta{Name: "dry"}, Spec: policy.Spec{
				From: []string{"*"}, To: []string{"*"}, As: as, Select: []policy.Term{{Names: []string{".*"}}},
			}}
			set(&p.Spec)
			o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p)
			must(t, err)
			delete(o, "status")
			_, err = b.api.Create(t.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if mistakes := policy.Validate(p); (err == nil) != (len(mistakes) == 0) {
				t.Errorf("as %q with %s: of the API server %v, of Validate %v", as, field, err, fmt.Sprint(mistakes))
			}
		}
	}
}

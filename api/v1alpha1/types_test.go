package v1alpha1_test

import (
	"go/build"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"strait.io/strait/api/v1alpha1"
)

// TestScheme: a scheme knows the types under the names that the API server gives them, and copies
// of an object are its own.
func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, o := range []runtime.Object{&v1alpha1.ServicePolicy{}, &v1alpha1.ServicePolicyList{}} {
		kinds, _, err := s.ObjectKinds(o)
		if err != nil || len(kinds) != 1 || kinds[0].GroupVersion().String() != "strait.io/v1alpha1" || !strings.HasPrefix(kinds[0].Kind, v1alpha1.Kind) {
			t.Errorf("%T is %v, %v", o, kinds, err)
		}
	}
	p := &v1alpha1.ServicePolicy{Spec: v1alpha1.ServicePolicySpec{From: []string{"a"}, Copy: v1alpha1.Copy{Labels: []string{"a"}}, Select: []v1alpha1.ServiceTerm{{Names: []string{"a"}}}}}
	c := p.DeepCopy()
	c.Spec.From[0], c.Spec.Copy.Labels[0], c.Spec.Select[0].Names[0] = "b", "b", "b"
	if p.Spec.From[0]+p.Spec.Copy.Labels[0]+p.Spec.Select[0].Names[0] != "aaa" {
		t.Errorf("the copy shares memory with %+v", p.Spec)
	}
}

// TestImports: a program that uses the types links none of strait, and no client.
func TestImports(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range p.Imports {
		if !strings.HasPrefix(i, "k8s.io/apimachinery/") {
			t.Errorf("the types import %s", i)
		}
	}
}

package cluster

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestVersions(t *testing.T) {
	crd := func(stored string, served ...string) *unstructured.Unstructured {
		var list []any
		for _, v := range served {
			list = append(list, map[string]any{"name": v, "served": true})
		}
		list = append(list, map[string]any{"name": "v0", "served": false})
		return &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"versions": list}, "status": map[string]any{"storedVersions": []any{stored}},
		}}
	}
	ours := crd("", "v1alpha1", "v1beta1")
	for _, c := range []struct {
		have *unstructured.Unstructured
		want string
	}{
		{crd("v1alpha1", "v1alpha1"), "[v1alpha1] [v1beta1] []"},
		{crd("v1beta1", "v1alpha1", "v1beta1"), "[v1alpha1 v1beta1] [] []"},
		{crd("v0", "v1alpha1"), "[v1alpha1] [v1beta1] [v0]"},
		{crd("v1", "v1alpha1", "v1"), "[v1alpha1 v1] [v1beta1] [v1]"},
	} {
		served, adds, loses := versions(c.have, ours)
		if got := fmt.Sprint(served, adds, loses); got != c.want {
			t.Errorf("%v: %s, want %s", c.have.Object, got, c.want)
		}
	}
}

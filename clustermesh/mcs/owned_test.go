package mcs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

// What a Create writes of an import that waits for a ClusterIP is in each apply after it, so that it need not be adopted.
func TestInEveryApply(t *testing.T) {
	for fields, want := range map[string]bool{
		`{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{}}},"f:spec":{".":{},"f:ports":{},"f:type":{}}}`: true,
		`{"f:metadata":{"f:labels":{"f:app.kubernetes.io/managed-by":{},"f:team":{}}},"f:spec":{"f:ports":{},"f:type":{}}}`:   false,
		`{"f:metadata":{"f:annotations":{"f:a":{}}},"f:spec":{"f:type":{}}}`:                                                  false,
		`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}},"f:spec":{"f:type":{}}}`:                                false,
		`{"f:spec":{"f:type":{},"f:ips":{}}}`: false,
		`{"f:status":{"f:conditions":{}}}`:    false,
		`[]`:                                  false,
	} {
		if got := InEveryApply(metav1.ManagedFieldsEntry{Manager: written.Manager, FieldsV1: metav1.NewFieldsV1(fields)}); got != want {
			t.Errorf("%s: %v", fields, got)
		}
	}
	if InEveryApply(metav1.ManagedFieldsEntry{Manager: written.Manager}) {
		t.Error("an entry without fields")
	}
}

func TestCreateOfWhatIsAppliedLater(t *testing.T) {
	create := func(e clustermesh.ClusterExport) (labels, affinity int) {
		w := newWorld(t)
		e.Export.Labels = map[string]string{"team": "a"}
		ops := w.settle(viewOf(e).change(pod("c1", "10.1.0.1", 8080)), serve)
		if ops[0].Verb != written.Create || ImportOf(ops[0]) == nil {
			t.Fatalf("first %v", ops[0])
		}
		if i := w.imports[serve.String()]; i.Labels["team"] != "a" {
			t.Errorf("in the end the labels are %v", i.Labels)
		}
		return len(ImportOf(ops[0]).Labels), len(ImportOf(ops[0]).Spec.SessionAffinity)
	}
	if labels, affinity := create(exportOf("c1", 1)); labels != 1 || affinity != 0 {
		t.Errorf("an import that waits for its address is made with %d labels", labels)
	}
	headless := exportOf("c1", 1, func(e *clustermesh.Export) { e.Type = clustermesh.Headless })
	if labels, _ := create(headless); labels != 2 {
		t.Errorf("a headless import is made with %d labels: it would be written twice", labels)
	}
}

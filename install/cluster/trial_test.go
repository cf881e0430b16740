package cluster

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

// noReset is a mapper of a few kinds.
type noReset struct{ *meta.DefaultRESTMapper }

func (noReset) Reset() {}

// trialIn is a test's namespace in a cluster that has some objects.
func trialIn(objects ...runtime.Object) Trial {
	scheme := runtime.NewScheme()
	_, _ = corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)
	group := schema.GroupVersion{Group: mcs, Version: "v1beta1"}
	kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
	for _, kind := range []string{"ServiceImport", "ServiceExport"} {
		kinds.Add(group.WithKind(kind), meta.RESTScopeNamespace)
		scheme.AddKnownTypeWithName(group.WithKind(kind), &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(group.WithKind(kind+"List"), &unstructured.UnstructuredList{})
	}
	c := &Cluster{Context: "c1", objects: fake.NewSimpleDynamicClient(scheme, objects...), kinds: noReset{kinds}}
	return Trial{Cluster: c, Name: "trial", Label: "strait.io/test", Elsewhere: "name another one with --test-namespace"}
}

// mcsTrial is an object of the MCS API in the namespace.
func mcsTrial(kind, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": mcs + "/v1beta1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "trial"}}}
	for k, v := range more {
		o.Object[k] = v
	}
	return o
}

func TestTrialClear(t *testing.T) {
	namespace := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "trial", Labels: labels}}
	}
	if found, err := trialIn().Clear(t.Context()); found || err != nil {
		t.Errorf("there is none: %v, %v", found, err)
	}
	own := trialIn(namespace(map[string]string{"strait.io/test": "true"}))
	if found, err := own.Clear(t.Context()); !found || err != nil {
		t.Errorf("a test's own: %v, %v", found, err)
	}
	if _, err := get[corev1.Namespace](t.Context(), own.Cluster, namespaces, "", "trial"); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	for _, labels := range []map[string]string{nil, {"strait.io/test": "false"}} {
		foreign := trialIn(namespace(labels))
		if _, err := foreign.Clear(t.Context()); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "--test-namespace") {
			t.Errorf("another one with labels %v: %v", labels, err)
		}
		if _, err := get[corev1.Namespace](t.Context(), foreign.Cluster, namespaces, "", "trial"); err != nil {
			t.Errorf("another one with labels %v: %v", labels, err)
		}
	}
}

func TestTrialImport(t *testing.T) {
	in := trialIn(mcsTrial("ServiceImport", "ready", map[string]any{"spec": map[string]any{"type": "ClusterSetIP", "ips": []any{"241.0.0.1", "fd00::1"}}}),
		mcsTrial("ServiceImport", "waits", map[string]any{"spec": map[string]any{"type": "ClusterSetIP"}}),
		mcsTrial("ServiceImport", "headless", map[string]any{"spec": map[string]any{"type": "Headless"}}))
	for _, c := range []struct {
		name  string
		ips   int
		found bool
	}{{"ready", 2, true}, {"waits", 0, false}, {"headless", 0, true}, {"none", 0, false}} {
		if ips, found, err := in.Import(t.Context(), c.name); len(ips) != c.ips || found != c.found || err != nil {
			t.Errorf("%s: %v, %v, %v", c.name, ips, found, err)
		}
	}
}

func TestExportTrouble(t *testing.T) {
	status := func(kind, value string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": kind, "status": value, "message": "why"}}}}
	}
	in := trialIn(mcsTrial("ServiceExport", "fine", status("Valid", "True")), mcsTrial("ServiceExport", "invalid", status("Valid", "False")),
		mcsTrial("ServiceExport", "conflict", status("Conflict", "True")), mcsTrial("ServiceExport", "new", nil))
	for name, want := range map[string]string{"fine": "", "invalid": "Valid is False: why", "conflict": "Conflict is True: why", "new": "no leader of the cluster has looked at it yet", "none": ""} {
		if got, err := in.ExportTrouble(t.Context(), name); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

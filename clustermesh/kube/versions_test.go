package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/config/crd"

	"strait.io/strait/test/kubelab/apiserver"
)

// alphaExport makes a Service, and a ServiceExport of v1alpha1.
func (b *bench) alphaExport(name string) {
	b.t.Helper()
	b.service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}})
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": map[string]any{"name": name},
	}}
	alpha := schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "serviceexports"}
	_, err := b.direct.dynamic.Resource(alpha).Namespace(b.ns).Create(b.t.Context(), u, metav1.CreateOptions{})
	must(b.t, err)
}

// An API server serves only v1alpha1, as with Karmada's CRDs. Then the CRDs are upgraded, and then
// v1alpha1 is served no more. At no time is an export taken for gone.
func TestSourceFollowsVersions(t *testing.T) {
	b := newBench(t)
	lab := apiserver.Lab(t, 1)
	apiserver.OldCRDs(t, lab, "c1")
	b.alphaExport("early")
	s := b.start()
	b.eventually("the export of v1alpha1", patient, func() bool { return hasExport(s, b.name("early")) })
	b.eventually("no Problem of missing types", patient, func() bool {
		local, ok := s.Local()
		return ok && !hasProblem(local.Problems, "CustomResourceDefinition")
	})
	stays := func(what string, cond func() bool) {
		t.Helper()
		took := b.eventually(what, patient, func() bool {
			if !hasExport(s, b.name("early")) {
				t.Fatalf("%s: the export was taken for gone", what)
			}
			return cond()
		})
		t.Logf("%s after %s", what, took)
	}

	must(t, lab.Apply(t.Context(), "c1", string(crd.ServiceExportCRD)+"\n---\n"+string(crd.ServiceImportCRD)))
	b.alphaExport("later")
	stays("an export after the upgrade", func() bool { return hasExport(s, b.name("later")) })
	_, err := lab.Kubectl(t.Context(), "c1", nil, "patch", "crd", "serviceexports.multicluster.x-k8s.io", "--type=json",
		"-p", `[{"op":"test","path":"/spec/versions/0/name","value":"v1alpha1"},{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	must(t, err)
	b.eventually("v1beta1", patient, func() bool {
		_, err := b.mcs.MulticlusterV1beta1().ServiceExports(b.ns).Get(t.Context(), "early", metav1.GetOptions{})
		return err == nil
	})
	time.Sleep(2 * time.Second) // what v1alpha1 had is not dropped either
	b.export("last")
	stays("an export of v1beta1", func() bool { return hasExport(s, b.name("last")) })
	stays("no Problem", func() bool {
		local, _ := s.Local()
		return !hasProblem(local.Problems, "serviceexports.multicluster")
	})
}

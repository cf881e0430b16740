package writer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

// alpha returns the client of a resource of v1alpha1 in the bench's namespace.
func (b *bench) alpha(plural string) dynamic.ResourceInterface {
	gvr := schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: plural}
	return dynamic.NewForConfigOrDie(b.rest).Resource(gvr).Namespace(b.ns)
}

// An API server serves only v1alpha1 of mcs-api v0.1.0, as with Karmada. Imports are written, without
// what that schema does not have, and writing ends. Then the CRDs are upgraded, and then v1alpha1 is
// served no more.
func TestWriterFollowsVersions(t *testing.T) {
	b := newBench(t)
	lab := apiserver.Lab(t, 2)
	apiserver.OldCRDs(t, lab, "c1")
	_, err := b.alpha("serviceexports").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": map[string]any{"name": "serve"},
	}}, metav1.CreateOptions{})
	must(t, err)
	w, _ := b.start()
	view := b.view(func(i *mcs.Import) { i.Labels, i.TrafficDistribution = map[string]string{"team": "a"}, "PreferClose" })
	w.Submit(view)
	testutil.Eventually(t, 30*time.Second, func() error {
		i, err := b.alpha("serviceimports").Get(t.Context(), "serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		ips, _, _ := unstructured.NestedStringSlice(i.Object, "spec", "ips")
		clusters, _, _ := unstructured.NestedSlice(i.Object, "status", "clusters")
		if len(ips) != 1 || len(clusters) != 2 || i.GetLabels()["team"] != "a" {
			return fmt.Errorf("import %v", i.Object)
		}
		e, err := b.alpha("serviceexports").Get(t.Context(), "serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if conditions, _, _ := unstructured.NestedSlice(e.Object, "status", "conditions"); len(conditions) != 3 {
			return fmt.Errorf("export's conditions %v", conditions)
		}
		return nil
	})
	s, err := b.core.CoreV1().Services(b.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
	must(t, err)
	if v := s.OwnerReferences[0].APIVersion; v != "multicluster.x-k8s.io/v1alpha1" {
		t.Errorf("owner %s: it is not served", v)
	}
	b.written(w)
	if ps := w.Problems(); len(ps) != 1 || !ps[0].Warning || !strings.Contains(ps[0].Message, "v1alpha1") || !strings.Contains(ps[0].Message, "spec.ipFamilies") {
		t.Errorf("problems %v", ps)
	}
	if n := b.atRest(w); n != 0 {
		t.Errorf("not settled with the schema of v0.1.0: %v", w.Writes())
	}
	for k := range w.Writes() {
		if k.Failed {
			t.Errorf("failed: %v", w.Writes())
		}
	}

	must(t, lab.Apply(t.Context(), "c1", string(crd.ServiceExportCRD)+"\n---\n"+string(crd.ServiceImportCRD)))
	same := func(i *mcsv1beta1.ServiceImport) error {
		if len(i.Spec.IPs) != 1 || i.Spec.IPs[0] != s.Spec.ClusterIP || len(i.Spec.IPFamilies) != 1 || i.Spec.TrafficDistribution == nil {
			return fmt.Errorf("address %s is not in force", s.Spec.ClusterIP)
		}
		return ready(i)
	}
	within := func(what string, check func(*mcsv1beta1.ServiceImport) error) {
		t.Helper()
		testutil.Eventually(t, checkEvery+30*time.Second, func() error {
			i, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Get(t.Context(), "serve", metav1.GetOptions{})
			if err == nil {
				err = check(i)
			}
			if err != nil {
				return fmt.Errorf("%s: %w: %+v", what, err, i)
			}
			return nil
		})
	}
	within("fields of v1beta1 after the upgrade", same)
	for _, kind := range []string{"serviceexports", "serviceimports"} {
		_, err = lab.Kubectl(t.Context(), "c1", nil, "patch", "crd", kind+".multicluster.x-k8s.io", "--type=json",
			"-p", `[{"op":"test","path":"/spec/versions/0/name","value":"v1alpha1"},{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
		must(t, err)
	}
	view = b.view(func(i *mcs.Import) { i.Labels, i.TrafficDistribution = map[string]string{"team": "b"}, "PreferClose" })
	w.Submit(view)
	within("a change after v1alpha1 has gone", func(i *mcsv1beta1.ServiceImport) error {
		if i.Labels["team"] != "b" {
			return fmt.Errorf("labels %v", i.Labels)
		}
		return same(i)
	})
	b.written(w)
	b.calm(w)
	if n := b.atRest(w); n != 0 {
		t.Errorf("not settled with v1beta1: %v", w.Writes())
	}
	now, err := b.core.CoreV1().Services(b.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
	must(t, err)
	if now.UID != s.UID {
		t.Error("the derived Service was deleted and created again")
	}
	for k := range w.Writes() {
		if k.Verb == written.Delete || k.Failed {
			t.Errorf("deleted or failed: %v", w.Writes())
		}
	}
}

// The CRDs of AWS' controller have no status subresource. An import's status is written as part of the
// import, an export's is not, and writing ends.
func TestWriterWithoutStatusSubresource(t *testing.T) {
	b := newBench(t)
	lab := apiserver.Lab(t, 2)
	apiserver.OldCRDs(t, lab, "c1")
	for _, kind := range []string{"serviceexports", "serviceimports"} {
		_, err := lab.Kubectl(t.Context(), "c1", nil, "patch", "crd", kind+".multicluster.x-k8s.io", "--type=json",
			"-p", `[{"op":"remove","path":"/spec/versions/0/subresources"}]`)
		must(t, err)
	}
	w := open(t, Config{Config: write.Config{REST: b.rest}})
	testutil.Eventually(t, 30*time.Second, func() error { // OpenAPI follows CRDs a moment later
		if api, there, err := w.served(t.Context()); err != nil || !there || !api.Imports.NoStatus || !api.Exports.NoStatus {
			return fmt.Errorf("served: %v %v", there, err)
		}
		return nil
	})
	w, _ = b.start()
	_, err := b.alpha("serviceexports").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": map[string]any{"name": "serve"},
	}}, metav1.CreateOptions{})
	must(t, err)
	w.Submit(b.view())
	check := func() error {
		i, err := b.alpha("serviceimports").Get(t.Context(), "serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		ips, _, _ := unstructured.NestedStringSlice(i.Object, "spec", "ips")
		clusters, _, _ := unstructured.NestedSlice(i.Object, "status", "clusters")
		if len(ips) != 1 || len(clusters) != 2 {
			return fmt.Errorf("import %v", i.Object)
		}
		return nil
	}
	testutil.Eventually(t, 30*time.Second, check)
	w.Submit(b.view(func(i *mcs.Import) { i.Ports = i.Ports[:1] }))
	b.rests(w, 0)
	must(t, check()) // a change of the spec keeps the status
	if n := b.atRest(w); n != 0 {
		t.Errorf("not settled: %v", w.Writes())
	}
	for k := range w.Writes() {
		if k.Failed || k.Kind == "ServiceExport" {
			t.Errorf("writes %v", w.Writes())
		}
	}
}

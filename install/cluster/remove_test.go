package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"strait.io/strait/clustermesh/written"
)

// TestUninstallRemovesEveryRow: of all that strait writes, uninstalling leaves only what a row leaves for a
// reason, and takes nothing of others.
func TestUninstallRemovesEveryRow(t *testing.T) {
	left, released, err := uninstalled(t, written.Rows)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range written.Rows {
		ours := left[fmt.Sprint("ours-", i)]
		for _, name := range r.Names {
			ours = ours || left[name]
		}
		switch {
		case r.End == written.Released && !slices.Contains(released, r.Resource.Resource+"."+r.Resource.Group):
			t.Errorf("%s, written by %s, is not released; released are %v", r.Kind, r.By, released)
		case r.End == written.Released:
		case ours != (r.End == written.Left):
			t.Errorf("%s, written by %s (%s): left behind is %t", r.Kind, r.By, r.End, ours)
		}
		if !left[fmt.Sprint("theirs-", i)] {
			t.Errorf("%s of others is deleted", r.Kind)
		}
	}
}

// TestUninstallSeesANewRow: a row is all that uninstalling needs.
func TestUninstallSeesANewRow(t *testing.T) {
	rows := written.Rows
	t.Cleanup(func() { written.Rows = rows })
	written.Rows = append(slices.Clone(rows), written.Row{
		Kind: "Widget", Resource: resource("example.com", "v1", "widgets"), By: written.Mirrors, Labels: "app.kubernetes.io/managed-by=strait", End: written.Deleted,
	})
	left, _, err := uninstalled(t, written.Rows)
	if err != nil {
		t.Fatal(err)
	}
	if left[fmt.Sprint("ours-", len(rows))] {
		t.Error("what a new row marks is left behind")
	}
}

// TestReleaseRefused: an object whose definition needs what strait wrote does not keep strait installed.
func TestReleaseRefused(t *testing.T) {
	row, _ := written.Kind(written.MultiService)
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{row.Resource: "List"},
		object(row, "shop", "cart", ""))
	refusal := apierrors.NewInvalid(row.GroupVersionKind().GroupKind(), "cart", nil)
	client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
	c := &Cluster{Context: "c1", objects: client}
	kept, err := c.release(t.Context(), row.Resource, row.GroupVersionKind().Kind)
	if err != nil || len(kept) != 1 || kept[0].Did != "kept" || kept[0].Name != "shop/cart" || kept[0].Why == "" {
		t.Errorf("kept %+v, %v", kept, err)
	}
}

// uninstalled makes an API server with an object of strait's and one of others' for each row, uninstalls, and
// returns the names that are left and the resources of which fields were released.
func uninstalled(t *testing.T, rows []written.Row) (left map[string]bool, released []string, err error) {
	t.Helper()
	const namespace = "strait-system"
	lists, objects := map[schema.GroupVersionResource]string{crds: "CustomResourceDefinitionList"}, []runtime.Object{}
	for _, kind := range append(slices.Clone(installed), namespaces) {
		lists[kind] = kind.Resource + "List"
	}
	for i, r := range rows {
		lists[r.Resource] = r.GroupVersionKind().Kind + "List"
		objects = append(objects, object(r, "somewhere", fmt.Sprint("theirs-", i), ""))
		if len(r.Names) == 0 {
			objects = append(objects, object(r, "somewhere", fmt.Sprint("ours-", i), r.Labels))
		}
		for _, name := range r.Names {
			objects = append(objects, object(r, namespace, name, ""))
		}
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		released = append(released, a.GetResource().Resource+"."+a.GetResource().Group)
		return true, &unstructured.Unstructured{}, nil
	})
	c := &Cluster{Context: "c1", Namespace: namespace, objects: client, kinds: unknownKinds{}}
	if _, err = c.RemoveWritten(t.Context()); err == nil {
		_, err = c.RemoveInstalled(t.Context())
	}
	left = map[string]bool{}
	for kind := range lists {
		list, err := client.Resource(kind).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			left[o.GetName()] = true
		}
	}
	return left, released, err
}

// object makes an object that a row's labels select.
func object(r written.Row, namespace, name, selector string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(r.GroupVersionKind())
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "strait", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"}})
	set := map[string]string{}
	for part := range strings.SplitSeq(selector, ",") {
		if key, value, _ := strings.Cut(part, "="); !strings.HasPrefix(key, "!") && key != "" {
			set[key] = value
		}
	}
	o.SetLabels(set)
	return o
}

// unknownKinds is the mapper of an API server that does not say what it serves.
type unknownKinds struct{ meta.RESTMapper }

func (unknownKinds) Reset() {}

func (unknownKinds) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

package writer

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

// A list of imports of another group reaches the store as imports of that group.
func TestForeignList(t *testing.T) {
	const list = `{"kind":"ServiceImportList","apiVersion":"net.gke.io/v1","metadata":{"resourceVersion":"9"},"items":[
{"kind":"ServiceImport","apiVersion":"net.gke.io/v1","metadata":{"namespace":"team","name":"serve","uid":"1","resourceVersion":"7"},
"spec":{"ips":["34.118.229.70"],"type":"ClusterSetIP","ports":[{"port":8080,"protocol":"TCP"}]}}]}`
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(list)) // the client reports what it cannot read
	}))
	defer s.Close()
	f := foreignKinds[2]
	client, err := reader[gkeImport, foreignList[gkeImport, *gkeImport]](&rest.Config{Host: s.URL}, f.row().GroupVersionKind(), f.row().Resource.Resource)
	must(t, err)
	got, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if asked != "/apis/net.gke.io/v1/serviceimports" || len(got.Items) != 1 {
		t.Fatalf("asked %s, got %+v", asked, got)
	}
	copied := got.DeepCopyObject().(*foreignList[gkeImport, *gkeImport])
	got.Items[0].Spec.IPs[0] = "changed"
	store := newStore()
	must(t, meta.EachListItem(copied, func(o runtime.Object) error {
		trim(o)
		store.put(o.(metav1.Object))
		return nil
	}))
	h := store.have(name("serve"))
	if h.Import != nil || h.OldImport != nil || h.GKEImport == nil || h.GKEImport.Name != "serve" || h.GKEImport.Spec.IPs[0] != "34.118.229.70" {
		t.Errorf("have %+v", h)
	}
	if gone := store.missing(&gkeImport{}, nil, "9"); len(gone) != 1 || gone[0].GetUID() != "1" {
		t.Errorf("missing %v", gone)
	}
	store.gone(&copied.Items[0])
	if names := store.names(); len(names) != 0 {
		t.Errorf("left %v", names)
	}
}

// Objects of one name in several groups are kept apart.
func TestForeignKindsInTheStore(t *testing.T) {
	store := newStore()
	set := func(o metav1.Object, uid string) {
		o.SetNamespace("team")
		o.SetName("serve")
		o.SetUID(types.UID("uid-" + uid))
		o.SetResourceVersion("5")
		store.put(o)
	}
	set(&oldImport{}, "1")
	set(&gkeImport{}, "2")
	set(&oldExport{}, "3")
	set(&mcsv1beta1.ServiceImport{}, "4")
	h := store.have(name("serve"))
	if h.OldImport.UID != "uid-1" || h.GKEImport.UID != "uid-2" || h.OldExport.UID != "uid-3" || h.Import.UID != "uid-4" || h.Export != nil {
		t.Errorf("have %+v", h)
	}
	older := &gkeImport{}
	older.Namespace, older.Name, older.UID, older.ResourceVersion, older.Generation = "team", "serve", "uid-2", "4", 8
	if store.put(older); store.have(name("serve")).GKEImport.Generation != 0 {
		t.Error("an older version counts")
	}
}

// FuzzForeignImport: whatever an import of another group holds, it is kept, and sent back as that
// kind.
func FuzzForeignImport(f *testing.F) {
	f.Add([]byte(`{"metadata":{"namespace":"team","name":"serve"},"spec":{"ips":["34.118.229.70"],"ports":[{"port":8080}]}}`))
	f.Add([]byte(`{"metadata":{"name":"serve","managedFields":[{"manager":"strait","fieldsV1":{"f:spec":{"f:ips":{}}}}]},"status":{"clusters":[{"cluster":"a"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var plain map[string]any
		if json.Unmarshal(text, &plain) != nil {
			return
		}
		o := &oldImport{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(plain, o) != nil {
			return
		}
		o.UID = "1" // every object of an API server has one
		trim(o)
		store := newStore()
		store.put(o)
		have := store.have(clustermesh.ServiceName{Namespace: o.Namespace, Name: o.Name}).OldImport
		if have == nil {
			t.Fatalf("not kept: %s", text)
		}
		sent := written.Op{Verb: written.Apply, Kind: written.OldImport, Object: have}
		if _, err := body(sent); err != nil {
			return
		}
		if got := (&term{}).kindOf(sent.Kind).String(); got != "multicluster.k8s.io/v1alpha1, Kind=ServiceImport" {
			t.Errorf("sent as %s", got)
		}
	})
}

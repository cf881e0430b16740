package kube

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"strait.io/strait/clustermesh/object"
)

// What is asked of the API server follows from the rows: which resource, which objects of it, and in
// which encoding. All requests share one connection.
func TestRequests(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	const metadata = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	asked := make(chan [3]string, 1)
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked <- [3]string{r.URL.Path, q.Get("labelSelector") + q.Get("fieldSelector"), r.Header.Get("Accept")}
		http.NotFound(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c, err := NewClient(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	must(t, err)
	want := map[string][3]string{
		object.NodeResource:      {"/api/v1/nodes", "", protobuf + ",application/json"},
		object.ServiceResource:   {"/api/v1/services", "", protobuf + ",application/json"},
		object.SliceResource:     {"/apis/discovery.k8s.io/v1/endpointslices", "endpointslice.kubernetes.io/managed-by!=strait.io", protobuf + ",application/json"},
		object.ExportResource:    {"/apis/multicluster.x-k8s.io/v1beta1/serviceexports", "", "application/json, */*"},
		object.NamespaceResource: {"/api/v1/namespaces", "", protobuf + metadata + ",application/json" + metadata + ",application/json"},
		object.PodResource:       {"/api/v1/pods", "spec.nodeName=n1", protobuf + ",application/json"},
		object.ImportResource:    {"/apis/multicluster.x-k8s.io/v1beta1/serviceimports", "app.kubernetes.io/managed-by!=strait", "application/json, */*"},
		object.GKEExportResource: {"/apis/net.gke.io/v1/serviceexports", "", protobuf + metadata + ",application/json" + metadata + ",application/json"},
		object.KEPExportResource: {"/apis/multicluster.k8s.io/v1alpha1/serviceexports", "", protobuf + metadata + ",application/json" + metadata + ",application/json"},
		object.KEPImportResource: {"/apis/multicluster.k8s.io/v1alpha1/serviceimports", "", protobuf + metadata + ",application/json" + metadata + ",application/json"},
		object.PropertyResource:  {"/apis/about.k8s.io/v1beta1/clusterproperties", "", "application/json"},
	}
	for _, k := range object.Kinds {
		source, _, err := c.listerOf(k, k.Versions[0])
		must(t, err)
		if _, err := source.List(t.Context(), newWatch(k, "n1", nil).selected(metav1.ListOptions{})); err == nil {
			t.Errorf("%s: no error, though the server has none", k.Resource)
		}
		got := <-asked
		if w, ok := want[k.Resource]; ok && got != w {
			t.Errorf("%s: asked %q, want %q", k.Resource, got, w)
		}
		delete(want, k.Resource)
	}
	if len(want) > 0 {
		t.Errorf("not asked for: %q", want)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

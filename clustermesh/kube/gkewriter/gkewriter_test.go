package gkewriter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gke"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

func writerTo(t *testing.T, host string, leading func() bool) *Writer {
	t.Helper()
	e, err := write.New(write.Config{REST: &rest.Config{Host: host}, Leading: leading})
	if err != nil {
		t.Fatal(err)
	}
	return New(e)
}

// workAt is what a Writer does in its passes.
func workAt(t *testing.T, host string) *work {
	t.Helper()
	return &work{Part: writerTo(t, host, always).Part}
}

func always() bool { return true }

// TestTermEnds: what was known in a term of leadership does not count in the next. Without objects
// of networking.gke.io, it is asked once whether something is left of another cluster's.
func TestTermEnds(t *testing.T) {
	host, asked := served(t, http.StatusOK, `{"apiVersion":"v1","kind":"List","items":[]}`)
	w := writerTo(t, host, always)
	w.Submit(func() gke.View { return gke.View{} })
	w.Report("", []clustermesh.Problem{{}})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := w.Run(ctx); err != nil || w.Problems() != nil {
		t.Errorf("%v, problems %v", err, w.Problems())
	}
	if all := asked(); len(all) != 2 { // once for Services, once for Ingresses
		t.Errorf("%q", all)
	}
	k := workAt(t, host)
	k.looked, k.statuses, k.problems = true, map[string]gke.Status{"u": {}}, []clustermesh.Problem{{}}
	if k.Forget(); k.looked || k.statuses != nil || k.problems != nil || k.Part == nil {
		t.Errorf("not forgotten: %+v", k)
	}
}

// TestLeftover: what was made for another cluster's object has no owner, so it is looked for once in each
// term, until the API server answers.
func TestLeftover(t *testing.T) {
	for what, c := range map[string]struct {
		status int
		text   string
		left   bool
		failed bool
	}{
		"nothing":   {http.StatusOK, `{"apiVersion":"v1","kind":"List","items":[]}`, false, false},
		"something": {http.StatusOK, `{"apiVersion":"v1","kind":"ServiceList","items":[{"metadata":{"name":"mci-cart"}}]}`, true, false},
		"no answer": {http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403}`, false, true},
	} {
		host, asked := served(t, c.status, c.text)
		left, err := workAt(t, host).leftover(t.Context())
		if left != c.left || (err != nil) != c.failed || !strings.HasPrefix(asked()[0], "GET /api/v1/services ") {
			t.Errorf("%s: %v, %v, asked %q", what, left, err, asked())
		}
	}
}

// served is an API server that answers with one text, and remembers what it was asked.
func served(t *testing.T, status int, text string) (host string, asked func() []string) {
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		all = append(all, r.Method+" "+r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string { return slices.Clone(all) }
}

// TestStatusOnce: a status for which the kind's definition has no room is written once, not in
// every pass; another status, or one of another version of the object, is written.
func TestStatusOnce(t *testing.T) {
	host, asked := served(t, http.StatusOK, `{"apiVersion":"networking.gke.io/v1","kind":"MultiClusterService","metadata":{"namespace":"shop","name":"cart","resourceVersion":"7"}}`)
	w := workAt(t, host)
	say := gke.Status{Row: written.MultiService, GKEObject: object.GKEObject{ID: object.ID{Namespace: "shop", Name: "cart"},
		APIVersion: "networking.gke.io/v1", Kind: "MultiClusterService", UID: "u", ResourceVersion: "6"}}
	write := func(version, reason string, at int64) {
		say.ResourceVersion = version
		say.Status.Conditions = []metav1.Condition{{Type: gke.Ready, Reason: reason, LastTransitionTime: metav1.Unix(at, 0)}}
		if err := w.writeStatus(t.Context(), say); err != nil {
			t.Fatal(err)
		}
	}
	write("6", gke.InForce, 1)
	write("7", gke.InForce, 2)
	if n := len(asked()); n != 1 {
		t.Errorf("written %d times", n)
	}
	write("7", gke.Failed, 3)
	write("8", gke.Failed, 3)
	all := asked()
	if len(all) != 3 || !strings.HasPrefix(all[0], "PATCH /apis/networking.gke.io/v1/namespaces/shop/multiclusterservices/cart/status ") || !strings.Contains(all[0], `"resourceVersion":"6"`) {
		t.Errorf("%q", all)
	}
}

// TestOther: an object that has the name is strait's own, or stays.
func TestOther(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mci-cart"}}
	for labels, want := range map[string]string{
		`{"app.kubernetes.io/managed-by":"strait","strait.io/multi-cluster-service":"cart"}`: "",
		`{"app.kubernetes.io/managed-by":"strait"}`:                                          "Service shop/mci-cart is there and is not strait's: it stays as it is; rename or delete it",
		`{}`: "Service shop/mci-cart is there and is not strait's: it stays as it is; rename or delete it",
	} {
		host, _ := served(t, http.StatusOK, `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"mci-cart","labels":`+labels+`}}`)
		got := ""
		if err := workAt(t, host).other(t.Context(), written.Op{Verb: written.Create, Kind: written.Service, Object: service}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", labels, got, want)
		}
	}
}

// TestNotLeading: who does not lead writes nothing.
func TestNotLeading(t *testing.T) {
	host, asked := served(t, http.StatusOK, `{}`)
	w := writerTo(t, host, func() bool { return false })
	g := object.GKEObject{ID: object.ID{Namespace: "shop", Name: "cart"}, APIVersion: "networking.gke.io/v1", Kind: "MultiClusterService"}
	v := gke.View{GKE: object.GKE{Services: []object.MultiService{{GKEObject: g, Selector: map[string]string{"a": "b"}}}}, Backend: func(string, bool) string { return "x" }}
	w.Pass(t.Context(), func() gke.View { return v }, nil)
	if all := asked(); len(all) > 0 {
		t.Errorf("%q", all)
	}
}

// TestRefused: what the API server refuses is a Problem, and the object's condition has it; the
// rest goes on.
func TestRefused(t *testing.T) {
	host, asked := served(t, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	w := writerTo(t, host, always)
	g := object.GKEObject{ID: object.ID{Namespace: "shop", Name: "cart"}, APIVersion: "networking.gke.io/v1", Kind: "MultiClusterService"}
	v := gke.View{GKE: object.GKE{Services: []object.MultiService{{GKEObject: g, Selector: map[string]string{"a": "b"}}}}, Backend: func(string, bool) string { return "x" }}
	w.Pass(t.Context(), func() gke.View { return v }, nil)
	all := asked()
	if len(all) != 2 || !strings.HasPrefix(all[0], "POST /api/v1/namespaces/shop/services") || !strings.Contains(all[1], `"reason":"Failed"`) || len(w.Problems()) != 2 {
		t.Errorf("asked %q, problems %v", all, w.Problems())
	}
}

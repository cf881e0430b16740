package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

// wish is a Work that wants nothing but what it is given.
type wish struct {
	needed func() bool
	ops    []written.Op
	wrote  []string
	done   int
	there  chan []metav1.Object
	forgot int
}

func (w *wish) Needed(context.Context, func() string) bool { return w.needed == nil || w.needed() }

func (w *wish) Decide(_ string, there []metav1.Object, _ time.Time) []written.Op {
	if w.there != nil {
		w.there <- there
	}
	return w.ops
}

func (w *wish) Wrote(_ context.Context, o written.Op, _ error) {
	w.wrote = append(w.wrote, o.Object.GetName())
}

func (w *wish) Done(context.Context, string) []clustermesh.Problem {
	w.done++
	return []clustermesh.Problem{{Object: "done"}}
}

func (w *wish) Forget() { w.forgot++ }

// TestStint: while thousands of objects are written, a pass ends after a stint, so that those that are there
// follow their sources. A pass in which a write fails goes on to its end, so that what fails keeps nothing
// back.
func TestStint(t *testing.T) {
	var ops []written.Op
	for i := range 100 {
		ops = append(ops, written.Op{Verb: written.Create, Kind: written.Service, Object: derived(fmt.Sprint("s", i))})
	}
	for name, c := range map[string]struct {
		refused string
		want    int // writes
	}{"all are taken": {"", 20}, "one is refused": {"s0", len(ops)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, client := engine(t, nil)
				client.PrependReactor("*", "services", func(a clienttesting.Action) (bool, runtime.Object, error) {
					time.Sleep(stint / 19)
					if o := a.(clienttesting.CreateAction).GetObject().(metav1.Object); o.GetName() == c.refused {
						return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), o.GetName(), errors.New("no"))
					}
					return false, nil, nil
				})
				w := &wish{}
				p := NewPasses[string](e.Part(written.Imports), w)
				p.carryOut(t.Context(), "", ops)
				if len(w.wrote) != c.want {
					t.Errorf("%d writes, want %d", len(w.wrote), c.want)
				}
				again, whole := len(p.changed) == 1, len(w.wrote) == len(ops)
				if (w.done == 1) != whole || again == whole || len(p.Problems()) != w.done {
					t.Errorf("after %d of %d writes: done %d times; another pass is due: %t", len(w.wrote), len(ops), w.done, again)
				}
			})
		})
	}
}

// TestPassEndsWithTheTerm: nothing is reported by a node that has just lost its Lease.
func TestPassEndsWithTheTerm(t *testing.T) {
	left := 1
	e, client := engine(t, func() bool { left--; return left >= 0 })
	w := &wish{}
	p := NewPasses[string](e.Part(written.Imports), w)
	p.carryOut(t.Context(), "", []written.Op{
		{Verb: written.Create, Kind: written.Service, Object: derived("a")}, {Verb: written.Create, Kind: written.Service, Object: derived("b")},
	})
	if len(client.Actions()) != 1 || !slices.Equal(w.wrote, []string{"a"}) || w.done != 0 || len(p.Problems()) != 0 {
		t.Errorf("%d requests, wrote %v, done %d", len(client.Actions()), w.wrote, w.done)
	}
}

// TestRunWatchesItsRows: a writer is shown what its rows mark, and nothing is read before that is needed.
func TestRunWatchesItsRows(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		q := r.URL.Query()
		if q.Get("watch") == "" {
			asked = append(asked, r.URL.Path+" "+q.Get("labelSelector"))
		}
		w.Header().Set("Content-Type", "application/json")
		kind := map[string]string{"/api/v1/services": "Service", "/apis/networking.k8s.io/v1/ingresses": "Ingress"}[r.URL.Path]
		if kind == "" || q.Get("watch") != "" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403}`)
			return
		}
		version := map[string]string{"Service": "v1", "Ingress": "networking.k8s.io/v1"}[kind]
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":%q}}]}`, version, kind, kind)
	}))
	defer s.Close()
	e, err := New(Config{REST: &rest.Config{Host: s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	w := &wish{there: make(chan []metav1.Object), needed: func() bool {
		mu.Lock()
		defer mu.Unlock()
		if len(asked) > 0 {
			t.Errorf("read before it is needed: %q", asked)
		}
		return true
	}}
	p := NewPasses[string](e.Part(written.GKE), w)
	p.Submit(func() string { return "" })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx, p) }()
	var names []string
	for _, o := range <-w.there {
		names = append(names, o.GetName())
	}
	cancel()
	if err := <-ended; err != nil || w.forgot != 1 || p.submitted() != nil {
		t.Errorf("%v, forgot %d times", err, w.forgot)
	}
	want := []string{
		"/api/v1/services " + object.LabelManagedBy + "=strait," + object.LabelMultiService,
		"/apis/networking.k8s.io/v1/ingresses " + object.LabelManagedBy + "=strait," + object.LabelMultiIngress,
	}
	slices.Sort(names)
	slices.Sort(asked)
	if !slices.Equal(names, []string{"Ingress", "Service"}) || !slices.Equal(asked, want) {
		t.Errorf("shown %v, asked %q", names, asked)
	}
}

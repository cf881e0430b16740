package mirrorer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// TestTermEnds: what was known in a term of leadership does not count in the next.
func TestTermEnds(t *testing.T) {
	m, err := New(Config{REST: &rest.Config{Host: "127.0.0.1:1"}, Leading: func() bool { return true }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m.Submit(func() View { t.Error("the view of a term that is over is used"); return View{} })
	m.problems, m.results = []clustermesh.Problem{{}}, []clustermesh.PolicyResult{{Policy: "p"}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx); err != nil || m.view != nil || m.Problems() != nil || m.Results() != nil {
		t.Errorf("%v, problems %v, results %v", err, m.Problems(), m.Results())
	}
}

// TestStint: while thousands of mirrors are written, a pass ends after a stint, so that those that are there
// follow their sources. A pass in which a write fails goes on to its end, so that what fails keeps nothing
// back.
func TestStint(t *testing.T) {
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{mirror.LabelPolicy: "p"}}}
	}
	var ops []written.Op
	for i := range 100 {
		ops = append(ops, written.Op{Verb: written.Create, Kind: written.Service, Object: service(fmt.Sprint("s", i))})
	}
	for name, c := range map[string]struct {
		refused string
		want    int // writes
	}{"all are taken": {"", 20}, "one is refused": {"s0", len(ops)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				var wrote []string
				client.PrependReactor("*", "services", func(a clienttesting.Action) (bool, runtime.Object, error) {
					time.Sleep(stint / 19)
					o := a.(clienttesting.CreateAction).GetObject().(*corev1.Service)
					wrote = append(wrote, o.Name)
					if o.Name == c.refused {
						return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), o.Name, errors.New("no"))
					}
					return false, nil, nil
				})
				m := &Mirrorer{client: client, leading: func() bool { return true }, fresh: mirrors{}, changed: notify.New(), told: notify.New()}
				m.pass(t.Context(), View{}, mirror.Cluster{}, mirror.Plan{}, ops)
				if len(wrote) != c.want {
					t.Errorf("%d writes, want %d", len(wrote), c.want)
				}
				said, again, whole := m.Results() != nil, len(m.changed) == 1, len(wrote) == len(ops)
				if said != whole || again == whole {
					t.Errorf("after %d of %d writes: results are said: %t; another pass is due: %t", len(wrote), len(ops), said, again)
				}
			})
		})
	}
}

func TestProblems(t *testing.T) {
	resource := schema.GroupResource{Resource: "services"}
	for _, c := range []struct {
		err  error
		want problem.Code
	}{
		{apierrors.NewConflict(resource, "cart", errors.New("changed")), ""},
		{apierrors.NewNotFound(resource, "cart"), ""},
		{apierrors.NewForbidden(resource, "cart", errors.New("no")), problem.WriteRefused},
	} {
		var got problem.Code
		for _, p := range failed("create Service shop/cart", c.err) {
			got = p.Code
		}
		if got != c.want {
			t.Errorf("%v: %q", c.err, got)
		}
	}
	taken := left(taken(&corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "cart", Labels: map[string]string{mirror.LabelPolicy: "p"}, Annotations: map[string]string{mirror.AnnotationFrom: "c1/shop/cart"},
	}}))
	if want := "c1/shop/cart is left out: TargetExists: Service shop/cart is there"; taken.Object != "ServicePolicy p" || !strings.HasPrefix(taken.Message, want) {
		t.Errorf("%+v", taken)
	}
	many := make([]clustermesh.Problem, 20)
	for i := range many {
		many[i].Code = problem.PolicySkips
	}
	if got := bounded(many); len(got) != maxProblems+1 || got[maxProblems].Message != "12 more for such reasons" {
		t.Errorf("%v", got)
	}
}

// TestInventory: mirrors are counted by what the API server took, before the watch shows it. Those
// that it shows are no longer fresh.
func TestInventory(t *testing.T) {
	service := func(name, policy string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{mirror.LabelPolicy: policy}}}
	}
	seen, fresh := inventory([]*corev1.Service{service("a", "p"), service("b", "p")}), mirrors{}
	for _, o := range []written.Op{
		{Verb: written.Create, Kind: written.Service, Object: service("c", "q")}, {Verb: written.Update, Kind: written.Service, Object: service("b", "q")}, {Verb: written.Delete, Kind: written.Service, Object: service("a", "")},
		{Verb: written.Create, Kind: written.Namespace, Object: &corev1.Namespace{}},
	} {
		seen.did(o)
	}
	fresh.did(written.Op{Verb: written.Create, Kind: written.Service, Object: service("c", "q")})
	if !fresh.has(service("c", "q")) || fresh.without(seen).has(service("c", "q")) {
		t.Errorf("fresh: %v, seen: %v", fresh, seen)
	}
	got := mirror.Results([]policy.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "i"}}}, mirror.Plan{Imported: map[string]int{"i": 3}}, seen.made(),
		[]mirror.Skipped{{Policy: "q", Source: "c1/shop/z"}, {Policy: "q", Source: "c1/shop/x", Reason: "r"}, {Policy: "p", Source: "c1/shop/y"}})
	want := []clustermesh.PolicyResult{
		{Policy: "i", Imported: 3}, {Policy: "p", Skipped: []clustermesh.SkippedSource{{Source: "c1/shop/y"}}},
		{Policy: "q", Mirrored: 2, Skipped: []clustermesh.SkippedSource{{Source: "c1/shop/x", Reason: "r"}, {Source: "c1/shop/z"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestNames: a name that was taken is tried again after a while.
func TestNames(t *testing.T) {
	var m Mirrorer
	start := time.Unix(100, 0)
	m.meet(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}, start)
	if got := m.names(start.Add(again - 1)); len(got) != 1 || !got["shop/cart"] {
		t.Errorf("%v", got)
	}
	if got := m.names(start.Add(again)); len(got) > 0 {
		t.Errorf("still %v", got)
	}
}

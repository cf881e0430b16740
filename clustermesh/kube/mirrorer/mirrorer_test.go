package mirrorer

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// mirrorerTo is a Mirrorer that leads.
func mirrorerTo(t *testing.T, config *rest.Config) *Mirrorer {
	t.Helper()
	e, err := write.New(write.Config{REST: config, Log: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return New(e)
}

// TestTermEnds: what was known in a term of leadership does not count in the next.
func TestTermEnds(t *testing.T) {
	m := mirrorerTo(t, &rest.Config{Host: "127.0.0.1:1"})
	m.Submit(func() View { t.Error("the view of a term that is over is used"); return View{} })
	m.Report("", []clustermesh.Problem{{}})
	m.work.results, m.work.fresh = []clustermesh.PolicyResult{{Policy: "p"}}, mirrors{{"shop", "cart"}: "p"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx); err != nil || m.Problems() != nil || m.Results() != nil || m.work.fresh != nil {
		t.Errorf("%v, problems %v, results %v", err, m.Problems(), m.Results())
	}
}

// TestResults: the first pass of a term has results, and news is only what changes them. A Service that
// is no mirror is left out, and so is what the API server refuses.
func TestResults(t *testing.T) {
	m := mirrorerTo(t, &rest.Config{Host: "127.0.0.1:1"})
	create := func(name string) written.Op {
		return written.Op{Verb: written.Create, Kind: written.Service, Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{mirror.LabelPolicy: "p"}, Annotations: map[string]string{mirror.AnnotationFrom: "c1/shop/" + name},
		}}}
	}
	services := schema.GroupResource{Resource: "services"}
	pass := func() ([]clustermesh.Problem, bool) {
		w := m.work
		w.Decide(View{}, nil, time.Now())
		w.Wrote(t.Context(), create("made"), nil)
		w.Wrote(t.Context(), create("taken"), apierrors.NewAlreadyExists(services, "taken"))
		w.Wrote(t.Context(), create("refused"), apierrors.NewForbidden(services, "refused", errors.New("no")))
		w.Wrote(t.Context(), create("changed"), apierrors.NewConflict(services, "changed", errors.New("changed")))
		return w.Done(t.Context(), View{}), len(m.Changed()) == 1
	}
	problems, news := pass()
	r := m.Results()
	if len(problems) != 2 || !news || len(r) != 1 || r[0].Mirrored != 1 || len(r[0].Skipped) != 2 {
		t.Fatalf("problems %v, news %t, results %+v", problems, news, r)
	}
	<-m.Changed()
	if _, news := pass(); news {
		t.Error("the same results are news")
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
		for _, p := range write.Refused("create Service shop/cart", c.err) {
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
	var m work
	start := time.Unix(100, 0)
	m.meet(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}, start)
	if got := m.names(start.Add(write.Again - 1)); len(got) != 1 || !got["shop/cart"] {
		t.Errorf("%v", got)
	}
	if got := m.names(start.Add(write.Again)); len(got) > 0 {
		t.Errorf("still %v", got)
	}
}

package mirrorer

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
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
	for _, o := range []mirror.Op{
		{Verb: mirror.Create, Service: service("c", "q")}, {Verb: mirror.Update, Service: service("b", "q")}, {Verb: mirror.Delete, Service: service("a", "")},
		{Verb: mirror.Create, Namespace: "shop"},
	} {
		seen.did(o)
	}
	fresh.did(mirror.Op{Verb: mirror.Create, Service: service("c", "q")})
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

package mirrorer

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"strait.io/strait/clustermesh"
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
	m.problems, m.made = []clustermesh.Problem{{}}, map[string]int{"p": 1}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx); err != nil || m.view != nil || m.Problems() != nil || m.Made() != nil {
		t.Errorf("%v, problems %v, made %v", err, m.Problems(), m.Made())
	}
}

func TestProblems(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", Labels: map[string]string{mirror.LabelPolicy: "p"}}}
	resource := schema.GroupResource{Resource: "services"}
	for _, c := range []struct {
		verb mirror.Verb
		err  error
		want problem.Code
	}{
		{mirror.Create, apierrors.NewAlreadyExists(resource, "cart"), problem.PolicySkips},
		{mirror.Update, apierrors.NewConflict(resource, "cart", errors.New("changed")), ""},
		{mirror.Delete, apierrors.NewNotFound(resource, "cart"), ""},
		{mirror.Create, apierrors.NewForbidden(resource, "cart", errors.New("no")), problem.WriteRefused},
	} {
		var got problem.Code
		for _, p := range failed(mirror.Op{Verb: c.verb, Service: service}, c.err) {
			got = p.Code
		}
		if got != c.want {
			t.Errorf("%s, %v: %q", c.verb, c.err, got)
		}
	}
	many := make([]clustermesh.Problem, 20)
	for i := range many {
		many[i].Code = problem.PolicySkips
	}
	if got := bounded(many); len(got) != maxProblems+1 || got[maxProblems].Message != "12 more for such reasons" {
		t.Errorf("%v", got)
	}
}

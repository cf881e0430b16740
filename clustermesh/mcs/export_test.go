package mcs

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
)

// What is left out of an export is reported where its owner looks, and the rest is exported.
func TestReady_NamesWhatIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.export(serve)
	v := viewOf(exportOf("c1", 1))
	e, _ := v.export(serve)
	e.Omitted, e.NotBalanced = `spec.exportedLabels["bad key!"]`, "s1:3868/SCTP"
	v = v.judge(e)
	w.settle(v, serve)
	c := condition(w.exports["default/serve"].Status.Conditions, "Ready")
	want := `Announced to the clusterset, except what is not valid: spec.exportedLabels["bad key!"]. ` +
		"Only the pods' own addresses answer on s1:3868/SCTP, since strait balances TCP and UDP."
	if c.Status != metav1.ConditionTrue || c.Message != want {
		t.Errorf("Ready: %+v, want the message %q", c, want)
	}
}

// An export of another API group has no conditions of ours: what they would have is reported.
func TestEventProblems_ConflictOfAnAlias(t *testing.T) {
	w := newWorld(t)
	w.export(serve)
	agreed, other := viewOf(exportOf("c1", 1)), func(e *clustermesh.Export) { e.AffinitySeconds = 9 }
	disagreed := viewOf(exportOf("c1", 1), exportOf("c2", 2, other))
	if ps := disagreed.EventProblems(serve, API{}); len(ps) != 0 {
		t.Errorf("of a ServiceExport: %v", ps)
	}
	odd := clustermesh.Problem{Object: "Service default/serve", Message: "odd"}
	for _, v := range []*View{&agreed, &disagreed} {
		e, _ := v.export(serve)
		e.Alias = "ServiceExport.net.gke.io"
		*v = v.judge(e)
		v.Problems = map[clustermesh.ServiceName][]clustermesh.Problem{serve: {odd}}
	}
	if ps := agreed.EventProblems(serve, API{}); len(ps) != 1 || ps[0] != odd {
		t.Errorf("where all agree: %v", ps)
	}
	ps := disagreed.EventProblems(serve, API{})
	if len(ps) != 2 || ps[0] != odd || ps[1].Object != "ServiceExport.net.gke.io default/serve" || !strings.Contains(ps[1].Message, "SessionAffinityConflict: Conflicting session affinity") {
		t.Errorf("where they do not: %v", ps)
	}
	w.settle(disagreed, serve)
	if cs := w.exports["default/serve"].Status.Conditions; len(cs) != 0 {
		t.Errorf("an alias' verdict on a ServiceExport: %+v", cs)
	}
}

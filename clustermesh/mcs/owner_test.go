package mcs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

func TestLocalBackends(t *testing.T) {
	others := []clustermesh.ClusterName{"c2", "c3"}
	for _, c := range []struct {
		local Local
		want  string
	}{
		{Local{Expected: 3, Healthy: 2, Share: 1, Whole: 1}, "True Sufficient This cluster's own endpoints bear what they should."},
		{Local{Expected: 3, Healthy: 1, Share: 0.4, Whole: 1, Others: others},
			"False Spilling 1 of this cluster's 3 endpoints can be used: they get 40 % of its new connections instead of 100 %, and c2, c3 the rest. strait explain default/serve has the reason for each."},
		{Local{Expected: 3, Whole: 1, Others: others, Port: "http:80/TCP"},
			"False NoLocalBackends None of this cluster's 3 endpoints can be used on port http:80/TCP: new connections go to c2, c3. strait explain default/serve has the reason for each."},
		{Local{}, "False NoLocalBackends This cluster has no endpoint: new connections are refused. strait explain default/serve has the reason for each."},
		{Local{Headless: true, Others: others}, "False NoLocalBackends This cluster has no endpoint: the name resolves to those of c2, c3. strait explain default/serve has the reason for each."},
		{Local{Headless: true, Expected: 1, Healthy: 1}, "True Sufficient This cluster's own endpoints bear what they should."},
	} {
		got := localBackends(serve, c.local)
		if text := fmt.Sprint(got.Status, " ", got.Reason, " ", got.Message); text != c.want || got.Type != LocalBackends {
			t.Errorf("%+v:\n%s, want\n%s", c.local, text, c.want)
		}
	}
}

func localOf(l Local) func(*Import) { return func(i *Import) { i.Local = &l } }

// The owner of an export sees in its conditions that its own cluster does not bear it, and its Events and
// those of the Service say when that changed. What is fine from the start is no news.
func TestLocalBackendsOfAnExport(t *testing.T) {
	w := newWorld(t)
	w.export(serve)
	v := func(l Local) View {
		return viewOf(exportOf("c1", 1), exportOf("c2", 2)).change(pod("c2", "10.2.0.1", 80)).change(localOf(l))
	}
	news := func(ops []written.Op) (out []written.Event) {
		for _, o := range ops {
			for _, e := range o.Events {
				if e.News {
					out = append(out, e)
				}
			}
		}
		return out
	}
	fine, none := Local{Expected: 2, Healthy: 2, Share: 1, Whole: 1}, Local{Expected: 2, Whole: 1, Others: []clustermesh.ClusterName{"c2"}}
	if n := news(w.settle(v(fine), serve)); len(n) != 0 {
		t.Errorf("fine from the start: %+v", n)
	}
	of := func() metav1.Condition { return condition(w.exports["default/serve"].Status.Conditions, LocalBackends) }
	began := of()
	if began.Status != metav1.ConditionTrue || began.ObservedGeneration != 1 {
		t.Errorf("fine: %+v", began)
	}
	ops := w.settle(v(none), serve)
	if n := news(ops); len(n) != 1 || !n[0].Warning || !n[0].Service || n[0].Reason != "NoLocalBackends" || !strings.Contains(n[0].Message, "go to c2") {
		t.Errorf("none: Events %+v", n)
	}
	if c := of(); c.Status != metav1.ConditionFalse || !c.LastTransitionTime.After(began.LastTransitionTime.Time) || !Restates(ops) {
		t.Errorf("none: %+v", c)
	}
	if n := news(w.settle(v(fine), serve)); len(n) != 1 || n[0].Warning || n[0].Reason != "Sufficient" {
		t.Errorf("fine again: Events %+v", n)
	}
	// Where nothing is exported any longer, there is no such condition.
	w.settle(v(none).judge(clustermesh.ExportStatus{Service: serve, Reason: "NoService", Message: "there is no Service"}), serve)
	if c := of(); c.Type != "" {
		t.Errorf("of an export that is not valid: %+v", c)
	}
}

// While the conditions for the owner are held, they stay; others do not wait for them, and the first is
// written at once.
func TestHold(t *testing.T) {
	w := newWorld(t)
	w.export(serve)
	v := func(healthy int, change ...func(*clustermesh.Export)) View {
		return viewOf(exportOf("c1", 1), exportOf("c2", 2, change...)).change(localOf(Local{Expected: 2, Healthy: healthy, Share: 1, Whole: 1}))
	}
	diff := func(v View, hold bool) []written.Op {
		h := w.have(serve)
		h.Hold = hold
		ops, _ := Diff(v, serve, h, w.now)
		return ops
	}
	w.settle(viewOf(exportOf("c1", 1), exportOf("c2", 2)), serve)
	if ops := diff(v(0), true); len(ops) != 1 || Restates(ops) {
		t.Errorf("the first: %v", ops)
	}
	w.settle(v(0), serve)
	if ops := diff(v(2), false); len(ops) != 1 || !Restates(ops) {
		t.Errorf("not held: %v", ops)
	}
	if ops := diff(v(2), true); len(ops) != 0 {
		t.Errorf("held: %v", ops)
	}
	ops := diff(v(2, func(e *clustermesh.Export) { e.AffinitySeconds = 9 }), true)
	if len(ops) != 1 || Restates(ops) {
		t.Fatalf("another condition: %v", ops)
	}
	cs := ExportOf(ops[0]).Status.Conditions
	if condition(cs, "Conflict").Status != metav1.ConditionTrue || condition(cs, LocalBackends).Status != metav1.ConditionFalse {
		t.Errorf("another condition: %+v", cs)
	}
}

// An import says whether there is an endpoint at all, and which clusters are held.
func TestImportNews(t *testing.T) {
	w := newWorld(t)
	of := func(kind string) string {
		c := condition(w.imports["default/serve"].Status.Conditions, kind)
		return fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message)
	}
	is := func(what, kind, want string) {
		t.Helper()
		if got := of(kind); got != want {
			t.Errorf("%s: %s is %q, want %q", what, kind, got, want)
		}
	}
	used := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 80))
	w.settle(used, serve)
	is("used", Backends, "True Available There are endpoints that can be used.")
	is("used", ClustersHeard, "True AllHeard All exporting clusters are heard.")
	w.settle(viewOf(exportOf("c2", 1)), serve)
	is("no pod", Backends, "False NoBackends No cluster has an endpoint that can be used: new connections are refused. strait explain default/serve has the reason for each.")
	const notHeard = "False ClusterHeld Not heard: c2. What is known of it from there may be out of date, and stays in force."
	used.Clusters["c2"] = Held
	ops := w.settle(used, serve)
	is("held", ClustersHeard, notHeard)
	is("held", Backends, "True Available There are endpoints that can be used.")
	if !slices.ContainsFunc(ops, func(o written.Op) bool {
		return slices.ContainsFunc(o.Events, func(e written.Event) bool { return e.Reason == "ClusterHeld" && e.Warning && e.News && e.Service })
	}) {
		t.Errorf("held: %v without an Event", ops)
	}
	gone := viewOf()
	gone.Clusters["c2"] = Held
	w.settle(gone, serve)
	if w.imports["default/serve"] == nil {
		t.Fatal("the import is gone")
	}
	gone.Clusters["c2"] = Current
	w.settle(gone, serve)
	if i := w.imports["default/serve"]; i != nil {
		t.Errorf("kept: %+v", i)
	}
	// A user's import stays without an exporter, and then nothing is said of endpoints.
	foreign(w, true)
	w.settle(used, serve)
	used.Clusters["c2"] = Current
	w.settle(used, serve)
	w.settle(viewOf(), serve)
	if got := of(Backends) + of(ClustersHeard); got != "    " {
		t.Errorf("without an exporter: %q", got)
	}
}

// Whatever a service does, a condition for its owner that is not held says what is so now; it changes its
// time only with its status; and there is an Event only if its status or reason turned.
func TestOwnersConditionsProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		w.export(serve)
		var was metav1.Condition
		for range rapid.IntRange(1, 6).Draw(rt, "turns") {
			expected := rapid.IntRange(0, 3).Draw(rt, "expected")
			l := Local{Expected: expected, Healthy: rapid.IntRange(0, expected).Draw(rt, "healthy"), Share: rapid.Float64Range(0, 1).Draw(rt, "share"), Others: []clustermesh.ClusterName{"c2"}}
			l.Whole = max(l.Share, rapid.Float64Range(0, 1).Draw(rt, "whole"))
			news := 0
			for _, o := range w.settle(viewOf(exportOf("c1", 1), exportOf("c2", 2)).change(localOf(l)), serve) {
				for _, e := range o.Events {
					if e.Reason == spilling || e.Reason == noLocal || e.Reason == sufficient {
						news++
					}
				}
			}
			now, want := condition(w.exports["default/serve"].Status.Conditions, LocalBackends), localBackends(serve, l)
			if now.Status != want.Status || now.Reason != want.Reason || now.Message != want.Message {
				rt.Fatalf("%+v, want %+v", now, want)
			}
			if same := was.Status == now.Status; was.Type != "" && same != was.LastTransitionTime.Equal(&now.LastTransitionTime) {
				rt.Fatalf("%+v after %+v", now, was)
			}
			turns := was.Status != now.Status || was.Reason != now.Reason
			if fineFirst := was.Type == "" && now.Status == metav1.ConditionTrue; (news == 1) != (turns && !fineFirst) || news > 1 {
				rt.Fatalf("%d Events of %+v after %+v", news, now, was)
			}
			was = now
			w.now = w.now.Add(time.Minute)
		}
	})
}

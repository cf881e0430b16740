package mcs

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
)

// A quota or a webhook may never admit the derived Service. Only what needs it waits: the import
// keeps up with the exports, and its condition has the reason.
func TestRefusedService(t *testing.T) {
	const refusal = "exceeded quota: few"
	w := newWorld(t)
	v := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 8080))
	rounds := func(v View) {
		for range 6 {
			ops, _ := Diff(v, serve, w.have(serve), w.now)
			for _, o := range ops {
				w.apply(o)
			}
		}
	}
	w.refuses = refusal
	rounds(v)
	i := w.imports["default/serve"]
	if c := condition(i.Status.Conditions, "Ready"); c.Status != metav1.ConditionFalse || c.Reason != "Pending" || !strings.Contains(c.Message, refusal) {
		t.Errorf("never created: %+v", c)
	}
	w.refuses = ""
	w.settle(v, serve)
	if c := condition(w.imports["default/serve"].Status.Conditions, "Ready"); c.Status != metav1.ConditionTrue {
		t.Fatalf("created at last: %+v", c)
	}
	w.refuses = refusal
	admin := clustermesh.ServicePort{Name: "admin", Proto: http.Proto, Port: 81}
	more := viewOf(exportOf("c2", 1), exportOf("c3", 2, func(e *clustermesh.Export) { e.Ports = append(e.Ports, admin) })).change(pod("c2", "10.2.0.2", 8080))
	rounds(more)
	i = w.imports["default/serve"]
	if c := condition(i.Status.Conditions, "Ready"); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "c2, c3") {
		t.Errorf("not updated: %+v", c)
	}
	if len(i.Spec.Ports) != 2 || len(i.Spec.IPs) != 1 || len(i.Status.Clusters) != 2 {
		t.Errorf("import %+v", i)
	}
	if got := derivedAddrs(w); len(got) != 1 || got[0] != "10.2.0.2" {
		t.Errorf("slices of the derived Service list %v", got)
	}
	w.refuses = ""
	w.settle(more, serve)
	if s := w.services["default/derived-serve"]; len(s.Spec.Ports) != 2 {
		t.Errorf("updated at last: %+v", s.Spec.Ports)
	}
}

// Refused EndpointSlices are for clients by kube-proxy and CoreDNS: the import is ready, and says
// what these lack.
func TestRefusedSlices(t *testing.T) {
	w := newWorld(t)
	v := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 8080))
	w.settle(v, serve)
	for _, refusal := range []string{"exceeded quota: few", ""} {
		w.trouble.RefusedSlices = refusal
		w.settle(v, serve)
		c := condition(w.imports["default/serve"].Status.Conditions, "Ready")
		if c.Status != metav1.ConditionTrue || c.Reason != "Ready" || strings.Contains(c.Message, "not up to date: "+refusal) != (refusal != "") {
			t.Errorf("%q: %+v", refusal, c)
		}
	}
}

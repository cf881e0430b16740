package authority

import (
	"testing"

	"strait.io/strait/clustermesh"
)

// TestNamespaceAccepts: what a Namespace says goes before the pins, and holds without them.
func TestNamespaceAccepts(t *testing.T) {
	export := func(ns string) clustermesh.Export {
		return clustermesh.Export{Service: clustermesh.ServiceName{Namespace: ns, Name: "cart"}}
	}
	record := func() clustermesh.Record {
		r := clustermesh.Record{Origin: clustermesh.Origin{Cluster: "b"}}
		for _, ns := range []string{"all", "b", "none", "other", "unsaid", "elsewhere"} {
			r.Content.Exports = append(r.Content.Exports, export(ns))
			r.Content.Globals = append(r.Content.Globals, clustermesh.Global{Service: export(ns).Service})
			r.Content.Endpoints = append(r.Content.Endpoints, clustermesh.Endpoint{Service: export(ns).Service})
		}
		return r
	}
	self := Self{Cluster: "a", Accept: clustermesh.Accept{
		"all": {clustermesh.AcceptAll}, "b": {"c", "b"}, "none": nil, "other": {"c"},
	}}
	names := func(r clustermesh.Record) (out string) {
		for _, e := range r.Content.Exports {
			out += e.Service.Namespace + " "
		}
		return out
	}
	open := AdmitUnpinned(self, record())
	if got := names(open); got != "all b unsaid elsewhere " {
		t.Errorf("without pins: %s", got)
	}
	if len(open.Content.Globals) != 4 || len(open.Content.Endpoints) != 4 || len(open.Problems) != 3 {
		t.Errorf("without pins: %d globals, %d endpoints, problems %v", len(open.Content.Globals), len(open.Content.Endpoints), open.Problems)
	}
	pinned := Admit(self, Pin{Cluster: "b", Namespaces: []string{"unsaid", "none"}}, Statement{}, record())
	if got := names(pinned); got != "all b unsaid " {
		t.Errorf("with pins: %s", got)
	}
	own := record()
	own.Origin.Cluster = "a"
	if got := AdmitUnpinned(self, own); len(got.Content.Exports) != len(own.Content.Exports) {
		t.Errorf("the own cluster: %s", names(got))
	}
}

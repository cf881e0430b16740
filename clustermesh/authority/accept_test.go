package authority

import (
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestNamespaceAccepts: a Namespace's annotation takes precedence over the pins, and applies without them.
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

// TestLocalNamespaces: a local namespace gets nothing from other clusters, which is no Problem, unless it
// names clusters that it accepts.
func TestLocalNamespaces(t *testing.T) {
	record := clustermesh.Record{Origin: clustermesh.Origin{Cluster: "b"}}
	for _, ns := range []string{"local", "global", "accepting", "unmarked"} {
		s := clustermesh.ServiceName{Namespace: ns, Name: "cart"}
		record.Content.Exports = append(record.Content.Exports, clustermesh.Export{Service: s})
		record.Content.Globals = append(record.Content.Globals, clustermesh.Global{Service: s})
		record.Content.Mirrors = append(record.Content.Mirrors, clustermesh.Export{Service: s})
		record.Content.Endpoints = append(record.Content.Endpoints, clustermesh.Endpoint{Service: s})
	}
	for _, c := range []struct {
		others bool
		want   []string
	}{{false, []string{"global", "accepting", "unmarked"}}, {true, []string{"global", "accepting"}}} {
		self := Self{Cluster: "a", Accept: clustermesh.Accept{"accepting": {"b"}}, LocalNamespaces: clustermesh.LocalNamespaces{
			Marked: map[string]bool{"local": true, "accepting": true, "global": false}, Others: c.others,
		}}
		for what, got := range map[string]clustermesh.Record{
			"unpinned": AdmitUnpinned(self, record), "pinned": Admit(self, Pin{Cluster: "b", Namespaces: []string{"*"}}, Statement{}, record),
		} {
			var names []string
			for _, e := range got.Content.Exports {
				names = append(names, e.Service.Namespace)
			}
			n := []int{len(got.Content.Globals), len(got.Content.Mirrors)}
			if !slices.Equal(names, c.want) || n[0] != len(c.want) || n[1] != len(c.want) {
				t.Errorf("%s, others %v: exports %v, %v global and mirrored, want %v", what, c.others, names, n, c.want)
			}
			if what == "unpinned" && (len(got.Content.Endpoints) != len(c.want) || len(got.Problems) != 0) {
				t.Errorf("others %v: %d endpoints, problems %v", c.others, len(got.Content.Endpoints), got.Problems)
			}
		}
	}
}

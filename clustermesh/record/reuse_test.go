package record_test

import (
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
)

// What is reused says the same, and is the list that was there.
func TestReuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching("[ab]"), 0, 2)
		local := func(names []string) (l clustermesh.Local) {
			for _, n := range names {
				s := clustermesh.ServiceName{Namespace: "default", Name: n}
				l.Exports = append(l.Exports, clustermesh.Export{Service: s, Labels: map[string]string{"of": n}})
				l.ExportStatus = append(l.ExportStatus, clustermesh.ExportStatus{Service: s})
				l.Globals = append(l.Globals, clustermesh.Global{Service: s, IPs: []netip.Addr{netip.IPv4Unspecified()}})
				l.Endpoints = append(l.Endpoints, clustermesh.Endpoint{Service: s, Ports: []clustermesh.EndpointPort{{Name: n}}})
				l.Allocations = append(l.Allocations, clustermesh.Allocation{Service: s})
				l.Problems = append(l.Problems, clustermesh.Problem{Object: n})
			}
			return l
		}
		was, is := names.Draw(t, "before"), names.Draw(t, "now")
		before, now := local(was), local(is)
		got := record.Reuse(now, before)
		if !reflect.DeepEqual(got, now) {
			t.Fatalf("%+v became %+v", now, got)
		}
		if len(is) == 0 || !reflect.DeepEqual(was, is) {
			return
		}
		if &got.Exports[0] != &before.Exports[0] || &got.ExportStatus[0] != &before.ExportStatus[0] || &got.Globals[0] != &before.Globals[0] ||
			&got.Endpoints[0] != &before.Endpoints[0] || &got.Allocations[0] != &before.Allocations[0] {
			t.Fatal("not the lists that were there")
		}
	})
}

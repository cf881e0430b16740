package daemon

import (
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// I1: a service is imported where its namespace exists.
func TestNamesOfNamespacesThatExist(t *testing.T) {
	var r plan.Result
	for _, ns := range []string{"here", "elsewhere"} {
		r.Imports = append(r.Imports, &plan.Import{
			Import: &clustermesh.Import{Service: clustermesh.ServiceName{Namespace: ns, Name: "serve"}, Type: clustermesh.ClusterSetIP},
			IPs:    []netip.Addr{netip.MustParseAddr("10.96.0.1")},
		})
	}
	for _, c := range []struct {
		namespaces []string
		want       int
	}{{nil, 2}, {[]string{}, 0}, {[]string{"default", "here"}, 1}} {
		if got := len(dnsServices(r, c.namespaces)); got != c.want {
			t.Errorf("namespaces %q: %d services, want %d", c.namespaces, got, c.want)
		}
	}
}

package dns

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/testutil"
)

// TestTableHeap bounds what a table of 10,000 services keeps besides their names, addresses and ports: little more than
// the list that it was made of.
func TestTableHeap(t *testing.T) {
	const many = 10_000
	var names []clustermesh.ServiceName
	for i := range many {
		names = append(names, clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprint("service-", i)})
	}
	ips := []netip.Addr{netip.MustParseAddr("241.0.0.1")}
	list := func() []Service {
		services := make([]Service, 0, many)
		for _, n := range names {
			services = append(services, Service{Name: n, IPs: ips})
		}
		return services
	}
	plain := testutil.Heap(func() any { return list() })
	table := testutil.Heap(func() any { return NewTable(list()) })
	t.Logf("%.1f MB for %d services, of which a list takes %.1f: %.2f times", table/1e6, many, plain/1e6, table/plain)
	if table > 2*plain {
		t.Error("more than twice the list")
	}
	runtime.KeepAlive(names)
}

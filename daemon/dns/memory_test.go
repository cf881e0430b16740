package dns

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestMemory bounds what a table of 10,000 services keeps besides their names, addresses and ports. It is a part of the
// 150 MB that the daemon may take.
func TestMemory(t *testing.T) {
	const many = 10_000
	var names []clustermesh.ServiceName
	for i := range many {
		names = append(names, clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprint("service-", i)})
	}
	ips := []netip.Addr{netip.MustParseAddr("241.0.0.1")}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	services := make([]Service, 0, many)
	for _, n := range names {
		services = append(services, Service{Name: n, IPs: ips})
	}
	table := NewTable(services)
	runtime.GC()
	runtime.ReadMemStats(&after)
	mb := float64(after.HeapAlloc-before.HeapAlloc) / 1e6
	t.Logf("%.1f MB for %d services", mb, many)
	if mb > 2.3 {
		t.Error("more than 2.3 MB")
	}
	runtime.KeepAlive(names)
	runtime.KeepAlive(table)
}

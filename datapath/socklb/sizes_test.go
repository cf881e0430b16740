package socklb

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// sized is a frontend of n backends; another version has other backends.
func sized(index, n, version int) datapath.Frontend {
	f := datapath.Frontend{Addr: l4.New(netip.AddrFrom4([4]byte{10, 96, byte(index >> 8), byte(index)}), 80, l4.TCP)}
	for i := range n {
		ip := netip.AddrFrom4([4]byte{10, byte(version), byte(i >> 8), byte(i)})
		f.Backends = append(f.Backends, datapath.Backend{IP: ip, Port: 8080, Weight: 1})
	}
	return f
}

// The default sizes hold what they are meant for, and every part of it can change: all at once, and a service of
// 10,000 endpoints beside the rest.
func TestDefaultSizes(t *testing.T) {
	const services, each, large = 10_000, 10, 10_000
	f := &Fake{}
	for version := range 3 {
		var want []datapath.Frontend
		for i := range 2 * services {
			want = append(want, sized(i, each, version))
		}
		if err := problem.Strict(f.Reconcile(want, true)); err != nil {
			t.Fatalf("version %d: %.300s", version, err)
		}
		for flip := range 3 {
			if err := problem.Strict(f.Reconcile([]datapath.Frontend{sized(2*services, large, 100+flip)}, false)); err != nil {
				t.Errorf("version %d, flip %d: %.300s", version, flip, err)
			}
		}
	}
}

// Sizes that the machine has no memory for are reported as too large.
func TestLoadErrorOfSizes(t *testing.T) {
	err := loadError(fmt.Errorf("map backends: map create: %w", unix.ENOMEM))
	if !strings.Contains(err.Error(), "map backends: map create: cannot allocate memory; the kernel lacks the memory") {
		t.Error(err)
	}
}

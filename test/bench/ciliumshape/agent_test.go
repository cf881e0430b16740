package ciliumshape

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

func frontend(vip string, pods ...string) datapath.Frontend {
	f := datapath.Frontend{Addr: l4.New(netip.MustParseAddr(vip), 80, l4.TCP)}
	for _, p := range pods {
		f.Backends = append(f.Backends, datapath.Backend{IP: netip.MustParseAddr(p), Port: 8080, Weight: 1})
	}
	return f
}

func heavier(f datapath.Frontend) datapath.Frontend {
	for i := range f.Backends {
		f.Backends[i].Weight++
	}
	return f
}

// TestOrder: the writes come in the order that Cilium's agent has.
func TestOrder(t *testing.T) {
	a := newAgent()
	for _, tc := range []struct {
		f    datapath.Frontend
		want []string
	}{
		{frontend("10.96.0.1", "10.1.0.1", "10.1.0.2"), []string{"backend 1", "backend 2", "slot 1 = 1", "slot 2 = 2", "count 2"}},
		{frontend("10.96.0.1", "10.1.0.1", "10.1.0.2"), nil},
		// Another service shares a backend, which then outlives the first.
		{frontend("10.96.0.2", "10.1.0.1"), []string{"slot 1 = 1", "count 1"}},
		{frontend("10.96.0.1", "10.1.0.3"), []string{"delete backend 2", "backend 3", "slot 1 = 3", "count 1", "delete slot 2"}},
		// A change of a backend that the maps do not show writes its element again.
		{heavier(frontend("10.96.0.1", "10.1.0.3")), []string{"backend 3", "slot 1 = 3", "count 1"}},
		{frontend("10.96.0.2"), []string{"delete backend 1", "count 0", "delete slot 1"}},
	} {
		var got []string
		for _, w := range a.change(tc.f) {
			got = append(got, told(w))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v: wrote %q, want %q", tc.f, got, tc.want)
		}
	}
}

func told(w write) string {
	gone := ""
	if w.value == nil {
		gone = "delete "
	}
	if w.in == inBackends {
		return fmt.Sprintf("%sbackend %d", gone, w.key)
	}
	slot := w.key.(shapeServiceKey).Slot
	switch v, _ := w.value.(shapeService); {
	case w.value == nil:
		return fmt.Sprintf("delete slot %d", slot)
	case slot == 0:
		return fmt.Sprintf("count %d", v.Count)
	default:
		return fmt.Sprintf("slot %d = %d", slot, v.BackendId)
	}
}

package socklb

import (
	"net/netip"
	"runtime"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// nowhere takes what a table writes, and keeps none of it.
type nowhere struct{ kernel }

func (nowhere) insertService(l4.Addr, uint32) error { return nil }
func (nowhere) storeSet(uint32, extent)             {}
func (nowhere) storeAffinity(uint32, uint32)        {}
func (nowhere) writeSlots(uint32, []socklbBackend)  {}

// TestMemory bounds what a table keeps of 10,000 frontends with 10 backends each, besides what it was given last. It is a
// part of the 150 MB that the daemon may take.
func TestMemory(t *testing.T) {
	plan := func() (out []datapath.Frontend) {
		for i := range 10_000 {
			f := datapath.Frontend{Addr: l4.New(netip.AddrFrom4([4]byte{241, 0, byte(i >> 8), byte(i)}), 80, l4.TCP)}
			for b := range 10 {
				f.Backends = append(f.Backends, datapath.Backend{IP: netip.AddrFrom4([4]byte{10, byte(b), byte(i >> 8), byte(i)}), Port: 8080, Weight: 1})
			}
			out = append(out, f)
		}
		return out
	}
	want := plan()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table, err := newTable(nowhere{}, nil, Config{}.withDefaults(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, say := range []string{"of the first plan", "of a later one that says the same"} {
		if err := table.reconcile(want, true); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		mb := (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / 1e6
		t.Logf("%.1f MB %s", mb, say)
		if mb > 3 {
			t.Errorf("more than 3 MB %s", say)
		}
		runtime.KeepAlive(want)
		want = plan()
	}
	runtime.KeepAlive(table)
}

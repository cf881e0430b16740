package socklb

import (
	"net/netip"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// nowhere takes what a table writes, and keeps none of it.
type nowhere struct{ kernel }

func (nowhere) insertService(l4.Addr, uint32) error { return nil }
func (nowhere) storeSet(uint32, extent)             {}
func (nowhere) storeAffinity(uint32, uint32)        {}
func (nowhere) writeSlots(uint32, []layout.Backend) {}
func (nowhere) mark(netip.Addr)                     {}

// TestTableHeap bounds what a table keeps of 10,000 frontends with 10 backends each, besides what it was given last: less
// than a second copy of that.
func TestTableHeap(t *testing.T) {
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
	given := testutil.Heap(func() any { return plan() })
	for times, say := range []string{"of the first plan", "of a later, equal one"} {
		kept := testutil.Heap(func() any {
			table, err := newTable(nowhere{}, nil, Config{}.withDefaults(), true)
			if err != nil {
				t.Fatal(err)
			}
			var want []datapath.Frontend
			for range times + 1 {
				want = plan()
				if err := problem.Strict(table.reconcile(want, true)); err != nil {
					t.Fatal(err)
				}
			}
			return []any{table, want}
		}) - given
		t.Logf("%.1f MB %s, which takes %.1f: %.2f times", kept/1e6, say, given/1e6, kept/given)
		if kept > given/2 {
			t.Errorf("more than half of what it was given, %s", say)
		}
	}
}

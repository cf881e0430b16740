package socklb

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// spoilFake changes the maps of a Fake as another program could, and returns in which of them.
func spoilFake(t *rapid.T, f *Fake) (where []string) {
	addrs := slices.SortedFunc(maps.Keys(f.services), l4.Addr.Compare)
	a := rapid.SampledFrom(addrs).Draw(t, "frontend")
	h := f.table.installed[a]
	for _, kind := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 1, 10, rapid.ID).Draw(t, "what") {
		name := ""
		switch kind {
		case 0:
			name = "services"
			delete(f.services, a)
		case 1:
			name = "services"
			f.services[a] = h.index + 1
		case 2:
			name = "services"
			f.services[l4.New(netip.MustParseAddr("10.66.0.1"), 66, l4.TCP)] = h.index
		case 3:
			name = "sets"
			f.sets[h.index] = extent{h.block.base, h.block.count + 1}
		case 4:
			name = "sets"
			f.affinity[h.index] = h.frontend.AffinitySeconds + 1
		case 5:
			if h.block.count == 0 {
				continue
			}
			name = "backends"
			s := f.slots[h.block.base]
			s.Addr[15]++
			f.slots[h.block.base] = s
		case 6:
			name = "addresses"
			f.own.Addrs = append(f.own.Addrs[:0:0], netip.MustParseAddr("10.66.0.2"))
		case 7:
			name = "address_sieve"
			f.own.Prefixes = nil
		case 8:
			name = "address_sieve"
			delete(f.marked, a.IP)
		case 9:
			f.marked[netip.MustParseAddr("10.66.0.3")] = true
		}
		if name != "" {
			where = append(where, name)
		}
	}
	return where
}

// Whatever another program does to the maps, mend reports where, and leaves what Reconcile put there; and there is
// nothing to mend otherwise.
func TestMendProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &Fake{MaxFrontends: 16, MaxBackends: 64}
		own := datapath.Own{Prefixes: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8")}, Addrs: []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("10.96.0.2")}}
		want := []datapath.Frontend{
			{Addr: addr("10.96.0.1:80/TCP"), Backends: backends("10.0.0.1:80", "10.0.0.2:80*3")},
			{Addr: addr("10.96.0.1:81/TCP"), Backends: backends("10.0.0.4:80"), AffinitySeconds: 7},
			{Addr: addr("10.96.0.3:80/UDP"), Backends: backends()},
			{Addr: addr("[fd00::a]:53/UDP"), Backends: backends("[fd00::1]:53")},
		}
		for i := range rapid.IntRange(0, 12).Draw(t, "more") { // up to full maps
			want = append(want, datapath.Frontend{Addr: l4.New(netip.MustParseAddr("10.96.1.1"), uint16(i+1), l4.TCP), Backends: manyBackends(4)})
		}
		if err := problem.Strict(f.SetOwn(own, true)); err != nil {
			t.Fatal(err)
		}
		if err := problem.Strict(f.Reconcile(want, true)); err != nil {
			t.Fatal(err)
		}
		if changed, err := f.table.mend(); err != nil || changed != nil {
			t.Fatalf("as Reconcile left it: %v, %v", changed, err)
		}
		state := func() string {
			fs, _ := f.Frontends()
			o := f.Own()
			return fmt.Sprint(fs, o, f.marked, shares(f))
		}
		before := state()
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			where := spoilFake(t, f)
			changed, err := f.table.mend()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range where {
				if !strings.Contains(fmt.Sprint(changed), "map "+name+":") {
					t.Errorf("%s is not among %v", name, changed)
				}
			}
			if now := state(); now != before {
				t.Fatalf("after %v:\n%s\nwant\n%s", where, now, before)
			}
			if again, err := f.table.mend(); err != nil || again != nil {
				t.Fatalf("again: %v, %v", again, err)
			}
		}
	})
}

// shares are the slots of all frontends as programs find them, with the parts that Frontends does not show.
func shares(f *Fake) (out []layout.Backend) {
	for _, a := range slices.SortedFunc(maps.Keys(f.services), l4.Addr.Compare) {
		e := f.sets[f.services[a]]
		for i := range e.count {
			out = append(out, f.slots[e.base+i])
		}
	}
	return out
}

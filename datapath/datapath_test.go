package datapath_test

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

func frontend(n byte, backends ...byte) datapath.Frontend {
	f := datapath.Frontend{Addr: l4.New(netip.AddrFrom4([4]byte{241, 0, 0, n}), 80, l4.TCP)}
	for _, b := range backends {
		f.Backends = append(f.Backends, datapath.Backend{IP: netip.AddrFrom4([4]byte{10, 0, 0, b}), Port: 8080, Weight: 1})
	}
	return f
}

func TestDiffFrontends(t *testing.T) {
	have := []datapath.Frontend{frontend(1, 1), frontend(2, 1), frontend(3, 1)}
	want := []datapath.Frontend{frontend(1, 1), frontend(2, 1, 2), frontend(4)}
	got := datapath.DiffFrontends(have, want)
	if !reflect.DeepEqual(got, datapath.Change[datapath.Frontend]{
		Put: []datapath.Frontend{frontend(2, 1, 2), frontend(4)}, Remove: []datapath.Frontend{frontend(3, 1)},
	}) {
		t.Errorf("diff %+v", got)
	}
	if same := datapath.DiffFrontends(have, have); len(same.Put)+len(same.Remove) > 0 {
		t.Errorf("equal sets differ: %+v", same)
	}
}

// Applying a diff to what is installed gives what is wanted, for any two sets.
func TestDiffProperties(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) datapath.Frontend {
		return frontend(rapid.Byte().Draw(t, "frontend"), rapid.SliceOfNDistinct(rapid.Byte(), 0, 3, rapid.ID[byte]).Draw(t, "backends")...)
	})
	sets := rapid.SliceOfDistinct(gen, func(f datapath.Frontend) l4.Addr { return f.Addr })
	rapid.Check(t, func(t *rapid.T) {
		have, want := sets.Draw(t, "have"), sets.Draw(t, "want")
		c := datapath.DiffFrontends(have, want)
		installed := map[l4.Addr]datapath.Frontend{}
		for _, f := range have {
			installed[f.Addr] = f
		}
		for _, f := range c.Put {
			installed[f.Addr] = f
		}
		for _, f := range c.Remove {
			delete(installed, f.Addr)
		}
		if len(installed) != len(want) {
			t.Fatalf("%d installed, %d wanted", len(installed), len(want))
		}
		for _, f := range want {
			if !installed[f.Addr].Equal(f) {
				t.Fatalf("holds %v, wanted %v", installed[f.Addr], f)
			}
		}
	})
}

func TestGrowLosesNothing(t *testing.T) {
	have := []datapath.Frontend{frontend(1, 1, 2), frontend(2, 1)}
	got := datapath.Grow(have, []datapath.Frontend{frontend(1, 2, 3), frontend(3, 9)})
	want := []datapath.Frontend{frontend(1, 1, 2, 3), frontend(3, 9)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := datapath.Grow(have, []datapath.Frontend{frontend(1)}); !slices.Equal(got[0].Backends, have[0].Backends) {
		t.Errorf("a frontend for which nothing is known yet became %+v", got)
	}
}

func TestSortBackendsMergesRepeats(t *testing.T) {
	f := frontend(1, 2, 1, 2)
	f.Backends[0].Weight = datapath.MaxWeight
	got := datapath.SortBackends(f.Backends)
	if len(got) != 2 || got[0].IP.As4()[3] != 1 || got[1].Weight != datapath.MaxWeight {
		t.Errorf("backends %+v", got)
	}
}

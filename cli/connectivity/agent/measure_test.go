package agent

import (
	"net/netip"
	"testing"

	"strait.io/strait/cli/connectivity"
)

func TestMeasureAll(t *testing.T) {
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), serve(t, connectivity.Identity{Cluster: "c1", Node: "n1", Pod: "pod-1"}))
	m := connectivity.Measure{Direct: []netip.AddrPort{at}, Through: at, Rounds: 2, RoundMillis: 20, Far: at, StreamSeconds: 1, Pings: 20}
	got := MeasureAll(t.Context(), m)
	if len(got.DirectRates) != 2 || len(got.ThroughRates) != 2 || got.DirectRates[0] <= 0 || got.ThroughRates[1] <= 0 {
		t.Errorf("connects: %v %v", got.DirectRates, got.ThroughRates)
	}
	if got.StreamBytes < 1<<20 || got.StreamSeconds < 0.5 || len(got.RTTs) == 0 || len(got.Errors) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestMeasureNothing: what does not answer is told, thing by thing.
func TestMeasureNothing(t *testing.T) {
	none := netip.MustParseAddrPort("127.0.0.1:1")
	got := MeasureAll(t.Context(), connectivity.Measure{Direct: []netip.AddrPort{none}, Through: none, Rounds: 1, RoundMillis: 20, Far: none, StreamSeconds: 1, Pings: 20})
	if len(got.Errors) != 4 || got.StreamBytes != 0 || len(got.RTTs) != 0 || got.MTU != 0 {
		t.Errorf("%+v, want four errors", got)
	}
}

func TestLargest(t *testing.T) {
	for _, c := range []struct{ limit, want int }{{1420, 1420}, {576, 576}, {9216, 9216}, {100, 0}, {20000, 9216}} {
		if got := largest(576, 9216, func(n int) bool { return n <= c.limit }); got != c.want {
			t.Errorf("limit %d: %d, want %d", c.limit, got, c.want)
		}
	}
}

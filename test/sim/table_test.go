package sim

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// today are upper bounds: what the code of today costs, and a margin, because another order of
// events gives slightly other figures. A step that makes something cheaper lowers them here. More
// than 400 nodes take too long for every run of the tests, because each node has a record, a
// contact and a stream for each other one: what a simulation takes grows with the square of the
// nodes. See TestOneOfThousand for one node of many.
var today = []Figures{
	{
		Clusters: 2, Nodes: 25, RestMessages: 0.8, RestBytes: 120, HeartbeatKB: 1.3, ChangeMessages: 2.5, ChangeBytes: 550,
		Half: 5 * time.Millisecond, Most: 60 * time.Millisecond, Lossy: 200 * time.Millisecond, BusyBytes: 260, BusiestKB: 2500, Busy: 120 * time.Millisecond,
		NewcomerBytes: 25_000, Newcomer: 900 * time.Millisecond, Alive: 1200 * time.Millisecond,
	},
	{
		Clusters: 4, Nodes: 50, RestMessages: 0.8, RestBytes: 120, HeartbeatKB: 1.4, ChangeMessages: 2.6, ChangeBytes: 550,
		Half: 70 * time.Millisecond, Most: 110 * time.Millisecond, Lossy: 200 * time.Millisecond,
		NewcomerBytes: 80_000, Newcomer: 1200 * time.Millisecond, Alive: 1900 * time.Millisecond,
	},
	{
		Clusters: 8, Nodes: 50, RestMessages: 0.8, RestBytes: 120, HeartbeatKB: 1.4, ChangeMessages: 2.6, ChangeBytes: 550,
		Half: 70 * time.Millisecond, Most: 110 * time.Millisecond, Lossy: 200 * time.Millisecond,
		NewcomerBytes: 150_000, Newcomer: 1300 * time.Millisecond, Alive: 1900 * time.Millisecond,
	},
}

// long is what the long preset runs besides, without bounds.
var long = []Figures{{Clusters: 10, Nodes: 100}}

// TestTable prints what a clusterset costs, and compares it with today's bounds.
func TestTable(t *testing.T) {
	t.Parallel()
	sizes := today
	switch {
	case slow > 1:
		sizes = today[:1]
	case *preset == "long":
		sizes = slices.Concat(today, long)
	}
	for _, bound := range sizes {
		t.Run(fmt.Sprint(bound.Clusters*bound.Nodes, " nodes"), func(t *testing.T) {
			got, err := Measure(*seed, bound.Clusters, bound.Nodes, bound.BusyBytes > 0 && slow == 1, Meter{time.Now, inUse})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				what       string
				got, bound float64
			}{
				{"messages per node and second at rest", got.RestMessages, bound.RestMessages},
				{"bytes per node and second at rest", got.RestBytes, bound.RestBytes},
				{"kB of heartbeats per node and second", got.HeartbeatKB, bound.HeartbeatKB},
				{"messages per node and change", got.ChangeMessages, bound.ChangeMessages},
				{"bytes per node and change", got.ChangeBytes, bound.ChangeBytes},
				{"a change reaches half of the nodes after ms", ms(got.Half), ms(bound.Half)},
				{"a change reaches 99 % after ms", ms(got.Most), ms(bound.Most)},
				{"a change reaches 99 % with 1 % loss after ms", ms(got.Lossy), ms(bound.Lossy)},
				{"bytes per node and change, at 500 a second", got.BusyBytes, bound.BusyBytes},
				{"kB a second that the busiest node sends then", got.BusiestKB, bound.BusiestKB},
				{"a change reaches 99 % after ms, at 500 a second", ms(got.Busy), ms(bound.Busy)},
				{"bytes that a newcomer receives", got.NewcomerBytes, bound.NewcomerBytes},
				{"a newcomer has all after ms", ms(got.Newcomer), ms(bound.Newcomer)},
				{"it is alive for all, and they for it, after ms", ms(got.Alive), ms(bound.Alive)},
			} {
				if c.got == 0 && c.bound == 0 {
					continue // not measured
				}
				t.Logf("%-48s %10.1f", c.what, c.got)
				if bound.RestMessages > 0 && c.got > c.bound {
					t.Errorf("%s: %.1f, more than %.1f\nto repeat it: go test ./test/sim -run TestTable -seed %d", c.what, c.got, c.bound, *seed)
				}
			}
			t.Logf("on this machine, now: per node %s of CPU each second at rest, %s each change (without decoding), and %.0f kB of memory",
				got.CPUAtRest, got.CPUOfChange, got.Memory/1e3)
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// inUse is how many bytes of memory are in use.
func inUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

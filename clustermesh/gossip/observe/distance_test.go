package observe

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

func far(cluster, node string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
}

// feed pings nodes for a while, once a second each, and returns the times at which a step changed.
func (d *Distances) feed(from time.Time, lasts time.Duration, rtts map[clustermesh.Origin]func(i int) time.Duration) (changes []time.Duration) {
	for i := range int(lasts / time.Second) {
		now := from.Add(time.Duration(i) * time.Second)
		for o, rtt := range rtts {
			d.Ping(o, rtt(i), now)
		}
		if d.Update(func(o clustermesh.Origin) bool { return rtts[o] != nil }, now) {
			changes = append(changes, time.Duration(i)*time.Second)
		}
	}
	return changes
}

func constant(ms int) func(int) time.Duration {
	return func(int) time.Duration { return time.Duration(ms) * time.Millisecond }
}

// TestDistances: an inversion is seen once, after a minute; what jitters or is slow for a moment changes
// nothing; what went is forgotten.
func TestDistances(t *testing.T) {
	d, t0 := NewDistances(), time.Unix(1e9, 0)
	type rtts = map[clustermesh.Origin]func(int) time.Duration
	steps := func(what string, want map[clustermesh.ClusterName]uint32) {
		t.Helper()
		if got := d.Steps(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	d.feed(t0, 50*time.Second, rtts{far("b", "n1"): constant(80)})
	steps("before a minute", map[clustermesh.ClusterName]uint32{})
	d = NewDistances()
	if got := d.feed(t0.Add(time.Hour), 5*time.Minute, rtts{far("b", "n1"): constant(80), far("c", "n1"): constant(12), far("d", "n1"): constant(1)}); len(got) != 1 {
		t.Errorf("changes at %v, want one for both", got)
	}
	steps("far and near", map[clustermesh.ClusterName]uint32{"b": 5, "c": 2})
	inverted := rtts{far("b", "n1"): constant(12), far("c", "n1"): constant(80), far("d", "n1"): constant(1)}
	if got := d.feed(t0.Add(2*time.Hour), 5*time.Minute, inverted); len(got) != 1 || got[0] < settled {
		t.Errorf("an inversion changes at %v", got)
	}
	steps("inverted", map[clustermesh.ClusterName]uint32{"b": 2, "c": 5})

	jitter := rtts{
		far("b", "n1"): func(i int) time.Duration { return time.Duration(9+i%3) * time.Millisecond }, // about a limit
		far("c", "n1"): func(i int) time.Duration { return time.Duration(80+500*(i%2)) * time.Millisecond },
		far("d", "n1"): func(i int) time.Duration { return time.Duration(1+max(0, 200-abs(i-150)*10)) * time.Millisecond }, // a burst
	}
	if got := d.feed(t0.Add(3*time.Hour), 10*time.Minute, jitter); len(got) != 0 {
		t.Errorf("jitter changes at %v", got)
	}
	// One node of three that is slow is not a cluster that is far.
	if got := d.feed(t0.Add(4*time.Hour), 5*time.Minute, rtts{far("d", "n1"): constant(1), far("d", "n2"): constant(1), far("d", "n3"): constant(300)}); len(got) != 1 {
		t.Errorf("changes at %v, want that b and c went", got)
	}
	steps("the others went", map[clustermesh.ClusterName]uint32{})
}

func abs(i int) int { return max(i, -i) }

// TestStepsAreBounded: whatever is measured, a cluster changes its step at most once a minute.
func TestStepsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, now, last := NewDistances(), time.Unix(1e9, 0), time.Time{}
		o := far("b", "n1")
		for range 300 {
			now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "pause")) * time.Second)
			d.Ping(o, time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "rtt")), now)
			if !d.Update(func(clustermesh.Origin) bool { return true }, now) {
				continue
			}
			if !last.IsZero() && now.Sub(last) < settled {
				t.Fatalf("changed again after %s", now.Sub(last))
			}
			last = now
		}
	})
}

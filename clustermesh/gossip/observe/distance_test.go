package observe

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

func far(cluster, node string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
}

func aliveAre(os ...clustermesh.Origin) clustermesh.ByOrigin[bool] {
	var d clustermesh.Draft[bool]
	for _, o := range os {
		d.Set(o, true)
	}
	return d.Share()
}

// feed pings nodes for a while, once a second each, and returns the times at which a step changed.
func (d *Distances) feed(from time.Time, lasts time.Duration, rtts map[clustermesh.Origin]func(i int) time.Duration) (changes []time.Duration) {
	for i := range int(lasts / time.Second) {
		now := from.Add(time.Duration(i) * time.Second)
		for o, rtt := range rtts {
			if rtt != nil { // it answers no pings
				d.Ping(o, rtt(i), time.Time{}, now)
			}
		}
		if d.Update(aliveAre(slices.Collect(maps.Keys(rtts))...), now) {
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
	d, t0 := NewDistances("a", nil, time.Unix(1e9, 0)), time.Unix(1e9, 0)
	type rtts = map[clustermesh.Origin]func(int) time.Duration
	steps := func(what string, want map[clustermesh.ClusterName]uint32) {
		t.Helper()
		if got := d.Steps(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	d.feed(t0, 50*time.Second, rtts{far("b", "n1"): constant(80)})
	steps("before a minute", map[clustermesh.ClusterName]uint32{})
	d = NewDistances("a", nil, time.Unix(1e9, 0))
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
	slow := rtts{far("d", "n1"): constant(1), far("d", "n2"): constant(1), far("d", "n3"): constant(300)}
	if got := d.feed(t0.Add(4*time.Hour), 5*time.Minute, slow); len(got) != 0 {
		t.Errorf("changes at %v", got)
	}
	steps("a slow node", map[clustermesh.ClusterName]uint32{"b": 2, "c": 5}) // b and c are not heard any more
	d.feed(t0.Add(40*time.Hour), time.Minute, slow)
	steps("a day later", map[clustermesh.ClusterName]uint32{})
}

// TestSilenceIsNotNear: a cluster that answers no pings keeps its step, or is the farthest if it never
// answered one. A restart forgets nothing.
func TestSilenceIsNotNear(t *testing.T) {
	d, t0 := NewDistances("a", nil, time.Unix(1e9, 0)), time.Unix(1e9, 0)
	answers := map[clustermesh.Origin]func(int) time.Duration{far("b", "n1"): constant(200), far("c", "n1"): constant(12)}
	d.feed(t0, 5*time.Minute, answers)
	want := map[clustermesh.ClusterName]uint32{"b": 6, "c": 2}
	if got := d.Steps(); !maps.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	again := NewDistances("a", d.Steps(), t0.Add(6*time.Minute))
	silent := map[clustermesh.Origin]func(int) time.Duration{far("b", "n1"): nil, far("c", "n1"): nil, far("d", "n1"): nil}
	want["d"] = Unmeasured
	for name, d := range map[string]*Distances{"this life": d, "the next life": again} {
		d.feed(t0.Add(6*time.Minute), time.Hour, silent)
		if got := d.Steps(); !maps.Equal(got, want) {
			t.Errorf("%s, after an hour of silence: %v, want %v", name, got, want)
		}
	}
	d.feed(t0.Add(2*time.Hour), 5*time.Minute, map[clustermesh.Origin]func(int) time.Duration{far("d", "n1"): constant(1)})
	if step := d.Steps()["d"]; step != 0 {
		t.Errorf("d answers, and has step %d", step)
	}
}

func abs(i int) int { return max(i, -i) }

// TestStepsAreBounded: whatever is measured, a cluster changes its step at most once a minute.
func TestStepsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, now, last := NewDistances("a", nil, time.Unix(1e9, 0)), time.Unix(1e9, 0), time.Time{}
		o := far("b", "n1")
		for range 300 {
			now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "pause")) * time.Second)
			d.Ping(o, time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "rtt")), time.Time{}, now)
			if !d.Update(aliveAre(o), now) {
				continue
			}
			if !last.IsZero() && now.Sub(last) < settled {
				t.Fatalf("changed again after %s", now.Sub(last))
			}
			last = now
		}
	})
}

// plainDistances measures all nodes each time.
type plainDistances struct {
	nodes    map[clustermesh.Origin][]sample
	clusters map[clustermesh.ClusterName]*standing
}

func (d *plainDistances) update(alive []clustermesh.Origin, now time.Time) (changed bool) {
	times := map[clustermesh.ClusterName][]time.Duration{}
	nodes := map[clustermesh.Origin][]sample{}
	for _, o := range alive {
		if o.Cluster == "a" {
			continue
		}
		if times[o.Cluster] == nil {
			times[o.Cluster] = []time.Duration{}
		}
		if all := d.nodes[o]; len(all) > 0 {
			old := slices.IndexFunc(all, func(s sample) bool { return now.Sub(s.at) <= while })
			if old < 0 {
				old = len(all) - 1
			}
			nodes[o] = all[old:]
			times[o.Cluster] = append(times[o.Cluster], shortest(nodes[o]))
		}
	}
	d.nodes = nodes
	for c, all := range times {
		if d.clusters[c] == nil {
			d.clusters[c] = &standing{first: now}
		}
		s := d.clusters[c]
		s.heard = now
		switch slices.Sort(all); {
		case len(all) > 0:
			m := all[len(all)/2]
			changed = s.look(stepOf(m*4/5), stepOf(m), stepOf(m*5/4), now) || changed
		case s.step == 0 && now.Sub(s.first) > unanswered:
			s.step, changed = Unmeasured, true
		}
	}
	return changed
}

// TestDistancesOfAll: whatever is pinged, and however nodes come and go, the distances are those that
// one gets by looking at all nodes each time.
func TestDistancesOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, 0)
		d := NewDistances("a", nil, now)
		plain := &plainDistances{map[clustermesh.Origin][]sample{}, map[clustermesh.ClusterName]*standing{}}
		nodes := []clustermesh.Origin{far("a", "n1"), far("b", "n1"), far("b", "n2"), far("b", "n3"), far("c", "n1"), far("c", "n2")}
		alive := aliveAre(nodes[:4]...)
		for range rapid.IntRange(1, 100).Draw(t, "ticks") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 1, 1, 30, 90, 400, 700}).Draw(t, "pause")) * time.Second)
			for range rapid.IntRange(0, 5).Draw(t, "pings") {
				o := rapid.SampledFrom(nodes[1:]).Draw(t, "node")
				rtt := time.Duration(rapid.SampledFrom([]int{1, 4, 12, 80, 300}).Draw(t, "rtt")) * time.Millisecond
				d.Ping(o, rtt, time.Time{}, now)
				all := append(plain.nodes[o], sample{rtt: rtt, at: now})
				plain.nodes[o] = all[max(0, len(all)-kept):]
			}
			switch o := rapid.SampledFrom(nodes).Draw(t, "comes or goes"); {
			case rapid.IntRange(0, 3).Draw(t, "or neither") > 0:
			case alive.Get(o):
				alive = alive.Without(o)
			default:
				alive = alive.With(o, true)
			}
			got, want := d.Update(alive, now), plain.update(alive.Origins(), now)
			if got != want {
				t.Fatalf("changed: %v, want %v", got, want)
			}
			rtts := map[clustermesh.Origin]time.Duration{}
			for o, all := range plain.nodes {
				rtts[o] = shortest(all)
			}
			if got := d.RTTs(); !maps.Equal(got, rtts) {
				t.Fatalf("round-trip times %v, want %v", got, rtts)
			}
			for c, want := range plain.clusters {
				if got := d.clusters[c]; *got != *want {
					t.Fatalf("cluster %s: %+v, want %+v", c, *got, *want)
				}
			}
		}
	})
}

// TestAhead: the difference of two clocks is that of the shortest round trip since one of them was
// set.
func TestAhead(t *testing.T) {
	o := clustermesh.Origin{Cluster: "east", Node: "n1"}
	now := time.Unix(1_700_000_000, 0)
	type ping struct{ rtt, ahead, bias time.Duration } // bias: the answer took so much longer than the ping
	for _, tc := range []struct {
		name  string
		pings []ping
		want  time.Duration
	}{
		{"one", []ping{{10 * time.Millisecond, time.Second, 0}}, time.Second},
		{"the shortest of some", []ping{{200 * time.Millisecond, 0, 150 * time.Millisecond}, {2 * time.Millisecond, 0, 0}, {300 * time.Millisecond, 0, -100 * time.Millisecond}}, 0},
		{"it was set", []ping{{time.Millisecond, 0, 0}, {40 * time.Millisecond, time.Hour, 0}, {50 * time.Millisecond, time.Hour, 20 * time.Millisecond}}, time.Hour},
		{"it was set back", []ping{{time.Millisecond, time.Hour, 0}, {40 * time.Millisecond, -time.Second, 0}}, -time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := NewDistances("here", nil, now)
			if _, known := d.Ahead(o); known {
				t.Error("known before a ping")
			}
			for i, p := range tc.pings {
				at := now.Add(time.Duration(i) * time.Second)
				d.Ping(o, p.rtt, at.Add(-p.rtt/2-p.bias/2+p.ahead), at)
			}
			if by, known := d.Ahead(o); !known || by != tc.want {
				t.Errorf("ahead by %s, %v, want %s", by, known, tc.want)
			}
			d.Ping(o, time.Millisecond, time.Time{}, now.Add(time.Minute))
			if _, known := d.Ahead(o); known {
				t.Error("known although it does not tell any more")
			}
		})
	}
}

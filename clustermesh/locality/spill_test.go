package locality_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// spills is the preference of the default configuration.
var spills = locality.Preference{Factor: 1.4}

// many returns ready and unready candidates at a place.
func many(ready, unready int, cluster, node, region, zone string) (out []locality.Candidate) {
	for i := range ready + unready {
		c := cand(cluster, node, region, zone)
		if i >= ready {
			notReady(&c)
		}
		out = append(out, c)
	}
	return out
}

// shares returns the part of each cluster.
func shares(c locality.Choice) map[clustermesh.ClusterName]float64 {
	total := 0.0
	for _, v := range c.Verdicts {
		total += float64(v.Weight)
	}
	out := map[clustermesh.ClusterName]float64{}
	for _, v := range c.Verdicts {
		if v.Weight > 0 {
			out[v.Cluster] += float64(v.Weight) / total
		}
	}
	return out
}

func show(s map[clustermesh.ClusterName]float64) string {
	var out []string
	for c, v := range s {
		out = append(out, fmt.Sprintf("%s=%.1f", c, 100*v))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func drainedBy(what string, part float64) func(*locality.Candidate) {
	return func(c *locality.Candidate) { c.Drained, c.DrainedBy = part, what }
}

func with(cs []locality.Candidate, f func(*locality.Candidate)) []locality.Candidate {
	for i := range cs {
		f(&cs[i])
	}
	return cs
}

func weights(text string) (out []clustermesh.ClusterWeight) {
	for _, s := range strings.Fields(text) {
		var w clustermesh.ClusterWeight
		name, number, _ := strings.Cut(s, "=")
		w.Cluster = clustermesh.ClusterName(name)
		fmt.Sscan(number, &w.Weight)
		out = append(out, w)
	}
	return out
}

// TestSpill: how much each cluster gets. The deciding node is in cluster a, zone z1, region r1.
func TestSpill(t *testing.T) {
	a := func(ready, unready int) []locality.Candidate { return many(ready, unready, "a", "n2", "r1", "z1") }
	b := func(ready, unready int) []locality.Candidate { return many(ready, unready, "b", "n9", "r2", "z9") }
	c := func(ready, unready int) []locality.Candidate { return many(ready, unready, "c", "n9", "r3", "z8") }
	prefer := func(change func(*locality.Preference)) locality.Preference {
		p := spills
		change(&p)
		return p
	}
	for _, tc := range []struct {
		name   string
		prefer locality.Preference
		in     [][]locality.Candidate
		want   string
	}{
		{"all are ready", spills, [][]locality.Candidate{a(10, 0), b(10, 0)}, "a=100.0"},
		{"enough are ready", spills, [][]locality.Candidate{a(15, 6), b(10, 0)}, "a=100.0"},
		{"half are ready", spills, [][]locality.Candidate{a(5, 5), b(10, 0)}, "a=70.0 b=30.0"},
		{"one of thirty is ready", spills, [][]locality.Candidate{a(1, 29), b(10, 0)}, "a=4.7 b=95.3"},
		{"none is ready", spills, [][]locality.Candidate{a(0, 10), b(10, 0)}, "b=100.0"},
		{"nowhere enough", spills, [][]locality.Candidate{a(1, 3), b(0, 4)}, "a=100.0"},
		{"both half", spills, [][]locality.Candidate{a(5, 5), b(5, 5), c(10, 0)}, "a=70.0 b=10.0 c=20.0"},
		{"off: one is enough", locality.Preference{}, [][]locality.Candidate{a(1, 29), b(10, 0)}, "a=100.0"},
		{"on machines that do not answer", spills, [][]locality.Candidate{a(5, 0), with(a(5, 0), silent), b(10, 0)}, "a=70.0 b=30.0"},
		{"on dead machines", spills, [][]locality.Candidate{a(5, 0), with(a(5, 0), dead), b(10, 0)}, "a=70.0 b=30.0"},
		{"terminating ones are not expected", spills, [][]locality.Candidate{a(5, 0), with(a(5, 0), terminating), b(10, 0)}, "a=100.0"},
		{"nothing spills to machines that do not answer", spills, [][]locality.Candidate{a(5, 5), with(b(10, 0), silent)}, "a=100.0"},
		{"at least 3", prefer(func(p *locality.Preference) { p.MinReady.Count = 3 }), [][]locality.Candidate{a(3, 9), b(9, 0)}, "a=100.0"},
		{"at least 3 of 2", prefer(func(p *locality.Preference) { p.MinReady.Count = 3 }), [][]locality.Candidate{a(2, 9), b(9, 0)}, "a=66.7 b=33.3"},
		{"at least 30%", prefer(func(p *locality.Preference) { p.MinReady.Percent = 30 }), [][]locality.Candidate{a(3, 7), b(9, 0)}, "a=100.0"},
		{"at least 100%", prefer(func(p *locality.Preference) { p.MinReady.Percent = 100 }), [][]locality.Candidate{a(9, 1), b(9, 0)}, "a=90.0 b=10.0"},
		{"a cluster is drained", spills, [][]locality.Candidate{with(a(9, 0), drainedBy("cluster a", 1)), b(9, 0)}, "b=100.0"},
		{"all are drained", spills, [][]locality.Candidate{with(a(9, 0), drainedBy("cluster a", 1)), with(b(9, 0), drainedBy("cluster b", 1))}, "a=100.0"},
		{"drained comes before what does not answer", spills, [][]locality.Candidate{with(a(9, 0), silent), with(b(9, 0), drainedBy("cluster b", 1))}, "b=100.0"},
		{"half way into a drain", prefer(func(p *locality.Preference) { p.Factor = 1 }), [][]locality.Candidate{with(a(10, 0), drainedBy("cluster a", 0.5)), b(9, 0)}, "a=50.0 b=50.0"},
		{"a little of a drain", spills, [][]locality.Candidate{with(a(10, 0), drainedBy("cluster a", 0.1)), b(9, 0)}, "a=90.0 b=10.0"},
		{"half way into a drain, without spill", locality.Preference{}, [][]locality.Candidate{with(a(10, 0), drainedBy("cluster a", 0.5)), b(9, 0)}, "a=50.0 b=50.0"},
		{"near the end of a drain, one is enough", prefer(func(p *locality.Preference) { p.MinReady.Count = 1 }),
			[][]locality.Candidate{with(a(10, 0), drainedBy("cluster a", 0.8)), b(9, 0)}, "a=20.0 b=80.0"},
		{"half way into a drain of what can bear half", prefer(func(p *locality.Preference) { p.Factor = 1 }), [][]locality.Candidate{with(a(5, 5), drainedBy("cluster a", 0.5)), b(9, 0)}, "a=25.0 b=75.0"},
		{"others of the rank bear what a drain takes", spills, [][]locality.Candidate{a(8, 0), with(a(2, 0), drainedBy("node n2", 0.9)), b(9, 0)}, "a=100.0"},
		{"weights", prefer(func(p *locality.Preference) { p.Weights = weights("a=90 b=10") }), [][]locality.Candidate{a(2, 0), b(7, 0), c(5, 0)}, "a=90.0 b=10.0"},
		{"half way into a drain of a cluster with a weight", prefer(func(p *locality.Preference) { p.Weights = weights("a=80 b=20") }),
			[][]locality.Candidate{with(a(10, 0), drainedBy("cluster a", 0.75)), b(10, 0)}, "a=50.0 b=50.0"},
		{"one of thirty with a weight", prefer(func(p *locality.Preference) { p.Weights = weights("a=50 b=50") }), [][]locality.Candidate{a(1, 29), b(30, 0)}, "a=4.5 b=95.5"},
		{"enough of one with a weight", prefer(func(p *locality.Preference) { p.Weights = weights("a=50 b=50") }), [][]locality.Candidate{a(8, 2), b(10, 0)}, "a=50.0 b=50.0"},
		{"weight 0 is for fail-over", prefer(func(p *locality.Preference) { p.Weights = weights("a=0 b=1") }), [][]locality.Candidate{a(2, 0), b(2, 2), c(5, 0)}, "a=30.0 b=70.0"},
		{"a weight of a cluster without endpoints", prefer(func(p *locality.Preference) { p.Weights = weights("a=1 x=9") }), [][]locality.Candidate{a(2, 0), b(2, 0)}, "a=100.0"},
		{"preferred clusters, in order", prefer(func(p *locality.Preference) { p.Prefer = []clustermesh.ClusterName{"c", "b"} }), [][]locality.Candidate{a(2, 0), b(2, 0), c(2, 2)}, "b=30.0 c=70.0"},
		{"only some tiers", prefer(func(p *locality.Preference) { p.Tiers = []string{"cluster", "clusterset"} }),
			[][]locality.Candidate{many(1, 0, "a", "n1", "r1", "z1"), many(1, 0, "b", "n1", "r1", "z1"), many(3, 0, "a", "n4", "r4", "z4")}, "a=100.0"},
		{"costs", prefer(func(p *locality.Preference) { p.Costs = map[clustermesh.ClusterName]uint32{"b": 9, "c": 2} }), [][]locality.Candidate{b(2, 0), c(1, 1)}, "b=30.0 c=70.0"},
	} {
		got := locality.Select(self, slices.Concat(tc.in...), tc.prefer, locality.Ramp{})
		if show(shares(got)) != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, show(shares(got)), tc.want)
		}
		sum := 0.0
		for _, l := range got.Levels {
			sum += l.Share
		}
		if len(got.Levels) > 0 && math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: the levels add up to %v", tc.name, sum)
		}
	}
}

// TestRamp: what spilled returns by steps, and leaves at once.
func TestRamp(t *testing.T) {
	in := func(ready int) []locality.Candidate {
		return slices.Concat(many(ready, 10-ready, "a", "n2", "r1", "z1"), many(10, 0, "b", "n9", "r2", "z9"))
	}
	choice := locality.Select(self, in(0), spills, locality.Ramp{})
	for _, step := range []struct {
		ready int
		want  string
		ramps bool
	}{
		{10, "a=20.0 b=80.0", true}, {10, "a=40.0 b=60.0", true}, {1, "a=14.0 b=86.0", false}, {10, "a=34.0 b=66.0", true},
		{0, "b=100.0", false}, {1, "a=14.0 b=86.0", false}, {3, "a=34.0 b=66.0", true}, {3, "a=42.0 b=58.0", false},
	} {
		choice = locality.Select(self, in(step.ready), spills, locality.Ramp{Past: choice.Levels, Step: 0.2})
		if got := show(shares(choice)); got != step.want || choice.Ramping != step.ramps {
			t.Errorf("%d ready: %s, ramping %v; want %s, %v", step.ready, got, choice.Ramping, step.want, step.ramps)
		}
	}
	// A node that is not past any, or has none farther, gets everything.
	alone := locality.Select(self, many(3, 0, "a", "n2", "r1", "z1"), spills, locality.Ramp{Past: choice.Levels, Step: 0.01})
	if got := show(shares(alone)); got != "a=100.0" || alone.Ramping {
		t.Errorf("alone: %s, ramping %v", got, alone.Ramping)
	}
}

// TestRampEnds: whatever a ramp began with, and however long its steps are, at its end each endpoint has
// the weight that it would have without. Sums of steps are rounded, and what is left of that is no share.
func TestRampEnds(t *testing.T) {
	const pods = 20
	in := func(near, middle int) []locality.Candidate {
		return slices.Concat(many(near, pods-near, "a", "n2", "r1", "z1"), many(middle, pods-middle, "b", "n9", "r1", "z2"), many(pods, 0, "c", "n7", "r9", "z9"))
	}
	weights := func(c locality.Choice) (out []uint32) {
		for _, v := range c.Verdicts {
			out = append(out, v.Weight)
		}
		return out
	}
	for _, step := range []float64{0.01, 0.05, 0.1, 0.15, 0.2, 1.0 / 3} {
		for near := range pods + 1 {
			for middle := range pods + 1 {
				for _, end := range [][]locality.Candidate{in(pods, pods), in(pods, middle), in(near, pods), in(pods/2, pods/2)} {
					choice := locality.Select(self, in(near, middle), spills, locality.Ramp{})
					for ramps := true; ramps; ramps = choice.Ramping {
						choice = locality.Select(self, end, spills, locality.Ramp{Past: choice.Levels, Step: step})
					}
					if got, want := weights(choice), weights(locality.Select(self, end, spills, locality.Ramp{})); !slices.Equal(got, want) {
						t.Fatalf("from %d and %d ready pods, steps of %v: weights %v, want %v", near, middle, step, got, want)
					}
				}
			}
		}
	}
}

// TestPrecision: what endpoints weigh adds up to the shares of their ranks, within half a point for
// up to 5,000 of them.
func TestPrecision(t *testing.T) {
	for _, n := range []int{1, 7, 100, 1000, 3000, 5000} {
		in := slices.Concat(many(5, 5, "a", "n2", "r1", "z1"), many(n, 0, "b", "n9", "r2", "z9"))
		got := locality.Select(self, in, spills, locality.Ramp{})
		if s := shares(got); math.Abs(s["a"]-0.7) > 0.005 {
			t.Errorf("%d far endpoints: %s, want a=70", n, show(s))
		}
		for _, v := range got.Verdicts {
			if v.Weight > locality.MaxWeight {
				t.Fatalf("%d far endpoints: one weighs %d", n, v.Weight)
			}
		}
	}
}

// TestReasons: a reason says what is so, also where several ranks share, and while one ramps up.
func TestReasons(t *testing.T) {
	a, b, c := many(1, 1, "a", "n2", "r1", "z1"), many(1, 0, "b", "n9", "r2", "z9"), many(1, 0, "c", "n9", "r3", "z8")
	costs := spills
	costs.Costs = map[clustermesh.ClusterName]uint32{"b": 2, "c": 9}
	alike := costs
	alike.Affinity = clustermesh.AffinityNone
	back := many(2, 0, "a", "n2", "r1", "z1")
	for _, tc := range []struct {
		name   string
		in     []locality.Candidate
		prefer locality.Preference
		past   []locality.Candidate
		want   map[clustermesh.ClusterName]string // of each cluster's first
	}{
		{"two ranks share", slices.Concat(a, b, c), costs, nil, map[clustermesh.ClusterName]string{
			"a": "ready, in the nearest tier; 1 of 2 ready: 70 % stays, the rest spills",
			"b": "ready; takes what nearer endpoints cannot",
			"c": "standby: nearer endpoints carry everything",
		}},
		{"cheaper", slices.Concat(b, c), costs, nil, map[clustermesh.ClusterName]string{
			"b": "ready, in the nearest tier", "c": "standby: a cheaper cluster carries everything",
		}},
		{"affinity none knows no costs", slices.Concat(back, b, c), alike, nil, map[clustermesh.ClusterName]string{
			"a": "ready; affinity none: all clusters alike", "b": "ready; affinity none: all clusters alike", "c": "ready; affinity none: all clusters alike",
		}},
		{"a ramp begins", slices.Concat(back, b), spills, b, map[clustermesh.ClusterName]string{
			"a": "ready, in the nearest tier; ramps up, 0 % now", "b": "ready; takes what nearer endpoints cannot",
		}},
	} {
		var ramp locality.Ramp
		if tc.past != nil {
			ramp.Past = locality.Select(self, tc.past, tc.prefer, locality.Ramp{}).Levels
		}
		seen := map[clustermesh.ClusterName]bool{}
		for _, v := range locality.Select(self, tc.in, tc.prefer, ramp).Verdicts {
			if want := tc.want[v.Cluster]; !seen[v.Cluster] && v.Reason != want {
				t.Errorf("%s: %s: %q, want %q", tc.name, v.Cluster, v.Reason, want)
			}
			seen[v.Cluster] = true
		}
	}
}

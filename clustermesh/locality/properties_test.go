package locality_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

var (
	names = rapid.SampledFrom([]clustermesh.ClusterName{"a", "b", "c", "d"})

	// anywhere is a candidate in one of a few places, in any state.
	anywhere = rapid.Custom(func(t *rapid.T) locality.Candidate {
		p := rapid.SampledFrom([][4]string{
			{"a", "n1", "r1", "z1"}, {"a", "n2", "r1", "z1"}, {"a", "n3", "r2", "z3"}, {"b", "n9", "r1", "z1"},
			{"b", "n8", "r3", "z4"}, {"c", "n7", "", ""}, {"d", "", "r1", ""},
		}).Draw(t, "place")
		return cand(p[0], p[1], p[2], p[3], func(c *locality.Candidate) {
			c.Ready, c.Serving, c.Terminating = rapid.Bool().Draw(t, "ready"), rapid.Bool().Draw(t, "serving"), rapid.IntRange(0, 5).Draw(t, "terminating") == 0
			c.Dead, c.Contact = rapid.IntRange(0, 9).Draw(t, "dead") == 0, clustermesh.Contact(rapid.IntRange(0, 3).Draw(t, "contact"))
			c.Drained, c.DrainedBy = rapid.SampledFrom([]float64{0, 0, 0, 0.0001, 0.25, 0.999, 1, 2}).Draw(t, "drained"), "node"
		})
	})

	// anything is what a Service and the configuration may ask for.
	anything = rapid.Custom(func(t *rapid.T) (p locality.Preference) {
		p.LocalOnly = rapid.IntRange(0, 9).Draw(t, "local only") == 0
		p.Distribution = rapid.SampledFrom([]string{"", "PreferSameNode", "PreferSameZone", "PreferClose", "other"}).Draw(t, "distribution")
		p.Affinity = rapid.SampledFrom([]clustermesh.GlobalAffinity{"", "none", "local", "remote", "other"}).Draw(t, "affinity")
		p.Tiers = rapid.SampledFrom([][]string{nil, {"zone", "clusterset"}, {"clusterset"}, {"moon"}}).Draw(t, "tiers")
		p.Prefer = rapid.SliceOfN(names, 0, 3).Draw(t, "prefer")
		p.Factor = rapid.SampledFrom([]float64{0, 1, 1.4, 100}).Draw(t, "factor")
		p.MinReady.Count, p.MinReady.Percent = rapid.SampledFrom([]uint32{0, 0, 1, 4, math.MaxUint32}).Draw(t, "count"), rapid.SampledFrom([]uint32{0, 30, 100}).Draw(t, "percent")
		if rapid.Bool().Draw(t, "weighted") {
			for _, c := range []clustermesh.ClusterName{"a", "b", "x"} {
				w := rapid.SampledFrom([]uint32{0, 1, 2, 1_000_000, math.MaxUint32}).Draw(t, "weight")
				p.Weights = append(p.Weights, clustermesh.ClusterWeight{Cluster: c, Weight: w})
			}
		}
		if rapid.Bool().Draw(t, "costs") {
			p.Costs = map[clustermesh.ClusterName]uint32{"b": rapid.Uint32().Draw(t, "cost of b"), "c": rapid.Uint32Range(0, 3).Draw(t, "cost of c")}
		}
		return p
	})
)

// TestAnyInput: whatever comes in, shares add up to 1, weights are those that the kernel takes, something is
// used if anything may be, and the order of candidates does not matter.
func TestAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, p := rapid.SliceOfN(anywhere, 0, 30).Draw(t, "candidates"), anything.Draw(t, "preference")
		ramp := locality.Ramp{Step: rapid.SampledFrom([]float64{0, 0.1, 1, 50}).Draw(t, "step")}
		if rapid.Bool().Draw(t, "ramps") {
			past := rapid.SliceOfN(anywhere, 0, 10).Draw(t, "past")
			ramp.Past = locality.Select(self, past, anything.Draw(t, "past preference"), locality.Ramp{}).Levels
		}
		got := locality.Select(self, in, p, ramp)
		sum := 0.0
		for _, l := range got.Levels {
			if l.Share < 0 || l.Share > 1+1e-9 {
				t.Fatalf("a share of %v", l.Share)
			}
			sum += l.Share
		}
		if len(got.Levels) > 0 && math.Abs(sum-1) > 1e-9 {
			t.Fatalf("the shares add up to %v", sum)
		}
		total, possible := 0.0, false
		for i, v := range got.Verdicts {
			total += float64(v.Weight)
			if v.Weight > locality.MaxWeight || v.Weight > 0 && (v.Dead || !v.Ready && !v.Terminating) || v.Reason == "" {
				t.Fatalf("candidate %d: %+v", i, v)
			}
			usable := !v.Dead && (v.Ready && !v.Terminating || v.Serving && v.Terminating)
			possible = possible || usable && (!p.LocalOnly || v.Cluster == "a" && v.Node == "n1")
		}
		if possible != (total > 0) || possible != (got.Tier != locality.None) {
			t.Fatalf("possible %v, total weight %v, tier %v", possible, total, got.Tier)
		}
		order := make([]int, len(in))
		for i := range order {
			order[i] = i
		}
		order = rapid.Permutation(order).Draw(t, "order")
		other := make([]locality.Candidate, len(in))
		for i, from := range order {
			other[i] = in[from]
		}
		again := locality.Select(self, other, p, ramp)
		for i, from := range order {
			if w, v := again.Verdicts[i], got.Verdicts[from]; w.Weight != v.Weight || w.Reason != v.Reason {
				t.Fatalf("candidate %d weighs %d (%s), and in another order %d (%s)", from, v.Weight, v.Reason, w.Weight, w.Reason)
			}
		}
	})
}

// TestMoreNearby: one more healthy endpoint in a tier never sends more beyond that tier.
func TestMoreNearby(t *testing.T) {
	within := func(c locality.Choice, tier locality.Tier) (share float64) {
		total := 0.0
		for _, v := range c.Verdicts {
			total += float64(v.Weight)
			if v.Tier <= tier {
				share += float64(v.Weight)
			}
		}
		return share / max(total, 1)
	}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(anywhere, 1, 30).Draw(t, "candidates")
		p := locality.Preference{Factor: rapid.SampledFrom([]float64{0, 1, 1.4, 3}).Draw(t, "factor")}
		p.MinReady.Count = rapid.Uint32Range(0, 4).Draw(t, "min")
		at := rapid.IntRange(0, len(in)-1).Draw(t, "which")
		for i := range in {
			in[i].Contact, in[i].Dead, in[i].Terminating = clustermesh.Alive, false, false
		}
		in[at].Ready = false
		before := locality.Select(self, in, p, locality.Ramp{})
		if len(before.Levels) == 0 {
			return // what is used was the least bad, and is not ranked by tiers alone
		}
		more := slices.Clone(in)
		more[at].Ready, more[at].Drained = true, 0
		after := locality.Select(self, more, p, locality.Ramp{})
		for tier := after.Verdicts[at].Tier; tier <= locality.ClusterSet; tier++ {
			if was, is := within(before, tier), within(after, tier); is < was-1e-3 {
				t.Fatalf("with one more healthy endpoint in tier %v, %v stays within %v; before, %v", after.Verdicts[at].Tier, is, tier, was)
			}
		}
	})
}

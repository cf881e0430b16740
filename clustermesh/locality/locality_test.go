package locality_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

var self = locality.Self{Cluster: "a", Node: "n1", Locality: clustermesh.Locality{Region: "r1", Zone: "z1"}}

func cand(cluster, node, region, zone string, change ...func(*locality.Candidate)) locality.Candidate {
	c := locality.Candidate{
		Addr:     netip.MustParseAddrPort("10.0.0.1:80"),
		Cluster:  clustermesh.ClusterName(cluster),
		Node:     clustermesh.NodeName(node),
		Locality: clustermesh.Locality{Region: region, Zone: zone},
		Ready:    true, Serving: true, Contact: clustermesh.Alive,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func notReady(c *locality.Candidate)    { c.Ready, c.Serving = false, false }
func terminating(c *locality.Candidate) { c.Ready, c.Terminating = false, true }
func dead(c *locality.Candidate)        { c.Dead, c.Contact = true, clustermesh.Silent }
func silent(c *locality.Candidate)      { c.Contact = clustermesh.Silent }
func dark(c *locality.Candidate)        { c.Fault = "carries nothing" }

func TestSelect(t *testing.T) {
	node := cand("a", "n1", "r1", "z1")
	zone := cand("b", "n9", "r1", "z1")
	region := cand("b", "n8", "r1", "z2")
	cluster := cand("a", "n2", "r2", "z3")
	far := cand("c", "n3", "r3", "z4")
	for _, tc := range []struct {
		name string
		in   []locality.Candidate
		tier locality.Tier
		used []int // indexes with weight
	}{
		{"nothing", nil, locality.None, nil},
		{"own node first", []locality.Candidate{far, cluster, region, zone, node}, locality.Node, []int{4}},
		{"then zone, across clusters", []locality.Candidate{far, cluster, region, zone}, locality.Zone, []int{3}},
		{"then region", []locality.Candidate{far, cluster, region}, locality.Region, []int{2}},
		{"then cluster", []locality.Candidate{far, cluster}, locality.Cluster, []int{1}},
		{"then anywhere, equally", []locality.Candidate{far, cand("d", "n4", "r4", "z5")}, locality.ClusterSet, []int{0, 1}},
		{"unready does not hold a tier", []locality.Candidate{cand("a", "n1", "r1", "z1", notReady), far}, locality.ClusterSet, []int{1}},
		{"terminating yields to ready anywhere", []locality.Candidate{cand("a", "n1", "r1", "z1", terminating), far}, locality.ClusterSet, []int{1}},
		{"terminating serves when nothing is ready", []locality.Candidate{cand("a", "n1", "r1", "z1", terminating), cand("c", "n3", "r3", "z4", notReady)}, locality.Node, []int{0}},
		{"dead is never used", []locality.Candidate{cand("a", "n2", "r1", "z1", dead)}, locality.None, nil},
		{"silent is last", []locality.Candidate{cand("a", "n2", "r1", "z1", silent), far}, locality.ClusterSet, []int{1}},
		{"silent is better than nothing", []locality.Candidate{cand("c", "n2", "r3", "z4", silent)}, locality.Unreachable, []int{0}},
		{"behind a dark tunnel is last", []locality.Candidate{cand("b", "n2", "r1", "z1", dark), far}, locality.ClusterSet, []int{1}},
		{"all tunnels are dark", []locality.Candidate{cand("b", "n2", "r1", "z1", dark), cand("c", "n3", "r3", "z4", dark)}, locality.Unreachable, []int{0, 1}},
		{"dark is better than terminating", []locality.Candidate{cand("b", "n2", "r1", "z1", dark), cand("c", "n3", "r3", "z4", terminating)}, locality.Unreachable, []int{0}},
		{"empty labels match nothing", []locality.Candidate{cand("b", "n2", "", "")}, locality.ClusterSet, []int{0}},
		{"barred is never used", []locality.Candidate{cand("a", "n1", "r1", "z1", func(c *locality.Candidate) { c.Barred = "no" }), far}, locality.ClusterSet, []int{1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := locality.Select(self, tc.in, locality.Preference{}, locality.Ramp{})
			if got.Tier != tc.tier {
				t.Errorf("tier %v, want %v", got.Tier, tc.tier)
			}
			used := map[int]bool{}
			for _, i := range tc.used {
				used[i] = true
			}
			for i, v := range got.Verdicts {
				if (v.Weight > 0) != used[i] {
					t.Errorf("candidate %d: weight %d (%s), want used=%v", i, v.Weight, v.Reason, used[i])
				}
				if v.Reason == "" {
					t.Errorf("candidate %d: no reason", i)
				}
			}
		})
	}
}

// A choice is empty only when nothing may be used, and weight never goes to what may not be.
func TestSelectProperties(t *testing.T) {
	name := rapid.SampledFrom([]string{"", "a", "b", "n1"})
	gen := rapid.Custom(func(t *rapid.T) locality.Candidate {
		return locality.Candidate{
			Cluster:  clustermesh.ClusterName(name.Draw(t, "cluster")),
			Node:     clustermesh.NodeName(name.Draw(t, "node")),
			Locality: clustermesh.Locality{Region: name.Draw(t, "region"), Zone: name.Draw(t, "zone")},
			Ready:    rapid.Bool().Draw(t, "ready"), Serving: rapid.Bool().Draw(t, "serving"),
			Terminating: rapid.Bool().Draw(t, "terminating"), Dead: rapid.Bool().Draw(t, "dead"),
			Contact: clustermesh.Contact(rapid.IntRange(0, 3).Draw(t, "contact")),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(gen).Draw(t, "candidates")
		prefer := locality.Preference{
			LocalOnly:    rapid.Bool().Draw(t, "local only"),
			Distribution: rapid.SampledFrom([]string{"", "PreferSameNode", "PreferSameZone", "PreferClose", "other"}).Draw(t, "distribution"),
			Affinity:     rapid.SampledFrom([]clustermesh.GlobalAffinity{"", "none", "local", "remote", "other"}).Draw(t, "affinity"),
		}
		got := locality.Select(self, in, prefer, locality.Ramp{})
		total, possible := uint32(0), false
		for i, v := range got.Verdicts {
			total += v.Weight
			if v.Weight > 0 && (v.Dead || (!v.Ready && !v.Terminating) || v.Tier != got.Tier) {
				t.Fatalf("candidate %d in use: %+v", i, v)
			}
			if prefer.LocalOnly && (v.Cluster != "a" || v.Node != "n1") {
				if v.Weight > 0 {
					t.Fatalf("candidate %d is not of this node: %+v", i, v)
				}
				continue
			}
			possible = possible || !in[i].Dead && (in[i].Ready && !in[i].Terminating || in[i].Serving && in[i].Terminating)
		}
		if possible != (total > 0) || possible != (got.Tier != locality.None) {
			t.Fatalf("possible %v, total weight %d, tier %v", possible, total, got.Tier)
		}
	})
}

package locality_test

import (
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// What a service asks for decides who is near. The candidates of every case: the own node, the own zone, the own
// cluster elsewhere, another cluster in the own zone, another cluster far away.
func TestPreferences(t *testing.T) {
	all := func(change ...func([]locality.Candidate)) []locality.Candidate {
		cs := []locality.Candidate{cand("a", "n1", "r1", "z1"), cand("a", "n2", "r1", "z1"), cand("a", "n3", "r2", "z3"),
			cand("b", "n9", "r1", "z1"), cand("b", "n8", "r3", "z4")}
		for _, f := range change {
			f(cs)
		}
		return cs
	}
	unready := func(which ...int) func([]locality.Candidate) {
		return func(cs []locality.Candidate) {
			for _, i := range which {
				notReady(&cs[i])
			}
		}
	}
	mute := func(which ...int) func([]locality.Candidate) {
		return func(cs []locality.Candidate) {
			for _, i := range which {
				silent(&cs[i])
			}
		}
	}
	leaving := func(which ...int) func([]locality.Candidate) {
		return func(cs []locality.Candidate) {
			for _, i := range which {
				terminating(&cs[i])
			}
		}
	}
	prefer := func(affinity, distribution string) locality.Preference {
		return locality.Preference{Affinity: clustermesh.GlobalAffinity(affinity), Distribution: distribution}
	}
	localOnly := locality.Preference{LocalOnly: true}
	noZone := locality.Self{Cluster: "a", Node: "n1"}
	leader := locality.Self{Cluster: "a"}
	for _, tc := range []struct {
		name   string
		self   locality.Self
		prefer locality.Preference
		in     []locality.Candidate
		used   string // index of each candidate in use
		tier   locality.Tier
		reason string // in the reason of the first in use, or of candidate 0 if none is
	}{
		{"the ladder", self, prefer("", ""), all(), "0", locality.Node, "ready, in the nearest tier"},
		{"same node is the ladder", self, prefer("", "PreferSameNode"), all(), "0", locality.Node, "trafficDistribution PreferSameNode"},
		{"same zone: node and zone alike", self, prefer("", "PreferSameZone"), all(), "013", locality.Zone, "trafficDistribution PreferSameZone"},
		{"PreferClose is its old name", self, prefer("", "PreferClose"), all(), "013", locality.Zone, "PreferClose"},
		{"same zone falls back along the ladder", self, prefer("", "PreferSameZone"), all(unready(0, 1, 3)), "2", locality.Cluster, ""},
		{"same zone where the node has none", noZone, prefer("", "PreferSameZone"), all(), "012", locality.Cluster, ""},
		{"unknown distribution says nothing", self, prefer("", "PreferMoon"), all(), "0", locality.Node, "ready, in the nearest tier"},
		{"affinity none", self, prefer("none", ""), all(), "01234", locality.ClusterSet, "all clusters alike"},
		{"affinity none, silent last", self, prefer("none", ""), all(mute(3, 4)), "012", locality.ClusterSet, ""},
		{"affinity local", self, prefer("local", ""), all(), "012", locality.Cluster, "affinity local"},
		{"affinity local, one left", self, prefer("local", ""), all(unready(0, 1)), "2", locality.Cluster, ""},
		{"affinity local, none ready", self, prefer("local", ""), all(unready(0, 1), leaving(2)), "34", locality.ClusterSet, "affinity local"},
		{"affinity remote", self, prefer("remote", ""), all(), "34", locality.ClusterSet, "affinity remote"},
		{"affinity remote, none ready", self, prefer("remote", ""), all(unready(3, 4)), "012", locality.Cluster, ""},
		{"affinity remote, silent others come last", self, prefer("remote", ""), all(mute(3, 4)), "012", locality.Cluster, ""},
		{"affinity first, then zone", self, prefer("remote", "PreferSameZone"), all(), "3", locality.Zone, "affinity remote"},
		{"affinity local with zone keeps to the cluster", self, prefer("local", "PreferSameZone"), all(unready(0, 1)), "2", locality.Cluster, ""},
		{"unknown affinity says nothing", self, prefer("moon", ""), all(), "0", locality.Node, ""},
		{"policy Local", self, localOnly, all(), "0", locality.Node, "on this node"},
		{"policy Local refuses", self, localOnly, all(unready(0)), "", locality.None, "not ready"},
		{"policy Local, terminating", self, localOnly, all(leaving(0)), "0", locality.Node, "terminating"},
		{"policy Local, another node", locality.Self{Cluster: "a", Node: "n7"}, localOnly, all(), "", locality.None, "not on this node"},
		{"the cluster as a whole", leader, prefer("", ""), all(), "012", locality.Cluster, ""},
		{"the cluster, none ready", leader, prefer("", ""), all(unready(0, 1, 2)), "34", locality.ClusterSet, ""},
		{"the cluster, policy Local", leader, localOnly, all(unready(0)), "12", locality.Cluster, ""},
		{"the cluster, policy Local, none ready", leader, localOnly, all(unready(0, 1, 2)), "", locality.None, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := locality.Select(tc.self, tc.in, tc.prefer, locality.Ramp{})
			used, first := "", 0
			for i, v := range got.Verdicts {
				if v.Weight > 0 {
					if used == "" {
						first = i
					}
					used += string(rune('0' + i))
				}
				if v.Reason == "" {
					t.Errorf("candidate %d: no reason", i)
				}
			}
			if used != tc.used || got.Tier != tc.tier {
				t.Errorf("uses %q in tier %v, want %q in %v", used, got.Tier, tc.used, tc.tier)
			}
			if r := got.Verdicts[first].Reason; !strings.Contains(r, tc.reason) {
				t.Errorf("reason %q, want %q in it", r, tc.reason)
			}
		})
	}
}

// An endpoint that stands by has in its reason which ones carry the traffic.
func TestStandbyReasons(t *testing.T) {
	in := []locality.Candidate{cand("a", "n1", "r1", "z1"), cand("b", "n9", "r1", "z1")}
	for _, tc := range []struct {
		affinity clustermesh.GlobalAffinity
		standby  int
		want     string
	}{
		{"", 1, "standby: tier node carries everything"},
		{"local", 1, "standby: affinity local, this cluster carries everything"},
		{"remote", 0, "standby: affinity remote, other clusters carry everything"},
	} {
		got := locality.Select(self, in, locality.Preference{Affinity: tc.affinity}, locality.Ramp{})
		if r := got.Verdicts[tc.standby].Reason; r != tc.want {
			t.Errorf("affinity %q: %q, want %q", tc.affinity, r, tc.want)
		}
	}
}

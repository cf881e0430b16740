package plan_test

import (
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// TestFar: of clusters that labels call equal, the one that answers faster is used, unless the
// configuration says what traffic costs. When the distances change, so does the plan, and what stands
// by says why.
func TestFar(t *testing.T) {
	type steps = map[clustermesh.ClusterName]uint32
	costs := map[clustermesh.ClusterName]map[clustermesh.ClusterName]uint32{"a": {"b": 1, "c": 2}}
	for _, tc := range []struct {
		what  string
		costs map[clustermesh.ClusterName]map[clustermesh.ClusterName]uint32
		far   []steps // one after the other
		want  string
	}{
		{"alike", nil, []steps{nil}, "b=50% c=50%"},
		{"b is far", nil, []steps{{"b": 3}}, "c=100%"},
		{"both are far", nil, []steps{{"b": 3, "c": 3}}, "b=50% c=50%"},
		{"an inversion", nil, []steps{{"b": 3, "c": 1}, {"b": 1, "c": 3}}, "b=100%"},
		{"no longer far", nil, []steps{{"b": 3}, nil}, "b=50% c=50%"},
		{"costs go before", costs, []steps{{"b": 3}}, "b=100%"},
	} {
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Locality: plan.Locality{Factor: 1.4, Costs: tc.costs}})
		s := clusterset()
		edit(&s, "a", "n1", unready)
		edit(&s, "a", "n2", unready)
		var r plan.Result
		for _, far := range tc.far {
			p.Far = far
			r = p.plan(s)
		}
		if got := where(r); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, got, tc.want)
		}
		if tc.what != "an inversion" {
			continue
		}
		for _, v := range r.Imports[0].Frontends()[0].Choice.Verdicts {
			if v.Cluster == "c" && v.Reason != "standby: a cluster that answers faster carries everything" {
				t.Errorf("the reason of %s is %q", v.Cluster, v.Reason)
			}
		}
	}
}

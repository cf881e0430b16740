package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// What a cluster's own endpoints bear, and what they would if nothing was wrong with them.
func TestOutlook(t *testing.T) {
	drained := func(c *clustermesh.Content) { c.Drains = []clustermesh.NodeDrain{{Node: "n1"}} }
	remote := func(c *clustermesh.Content) {
		c.Exports[0].Routing = &clustermesh.Routing{Prefer: []clustermesh.ClusterName{"b"}}
	}
	alike := func(c *clustermesh.Content) {
		c.Exports[0].Routing = &clustermesh.Routing{Weights: []clustermesh.ClusterWeight{{Cluster: "a", Weight: 1}, {Cluster: "b", Weight: 1}}}
	}
	for _, c := range []struct {
		name   string
		factor float64
		edit   func(s *clustermesh.State)
		want   string
	}{
		{"all ready", 1, func(*clustermesh.State) {}, "2/2 100 of 100"},
		{"one is enough", 0, func(s *clustermesh.State) { edit(s, "a", "n1", unready) }, "1/2 100 of 100"},
		{"one of two spills", 1, func(s *clustermesh.State) { edit(s, "a", "n1", unready) }, "1/2 50 of 100 b c"},
		{"a node is drained", 1, func(s *clustermesh.State) { edit(s, "a", "", drained) }, "1/2 50 of 100 b c"},
		{"none", 1, func(s *clustermesh.State) { edit(s, "a", "n1", unready); edit(s, "a", "n2", unready) }, "0/2 0 of 100 b c"},
		{"another cluster is preferred", 1, func(s *clustermesh.State) { edit(s, "a", "", remote); edit(s, "a", "n1", unready) }, "1/2 0 of 0 b"},
		{"weights", 1, func(s *clustermesh.State) { edit(s, "a", "", alike) }, "2/2 50 of 50 b"},
		{"not exported here", 1, func(s *clustermesh.State) { edit(s, "a", "", func(c *clustermesh.Content) { c.Exports = nil }) }, ""},
	} {
		s := clusterset()
		c.edit(&s)
		r := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Locality: plan.Locality{Factor: c.factor}})
		var got []string
		for _, o := range r.Imports[0].Outlook() {
			if o.Own.Expected == 0 { // IPv6
				continue
			}
			line := fmt.Sprintf("%d/%d %.0f of %.0f", o.Own.Healthy, o.Own.Expected, 100*o.Own.Share, 100*o.Whole)
			for _, other := range o.Others {
				line += " " + string(other)
			}
			got = append(got, line)
		}
		if g := strings.Join(got, "; "); g != c.want {
			t.Errorf("%s: %q, want %q", c.name, g, c.want)
		}
	}
}

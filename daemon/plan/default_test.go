package plan_test

import (
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// TestDefaults: what a Service does not say, the configuration does.
func TestDefaults(t *testing.T) {
	inRegion := plan.Locality{Tiers: []string{"region", "clusterset"}}
	c := plan.Locality{Prefer: []clustermesh.ClusterName{"c"}}
	for _, tc := range []struct {
		name    string
		config  plan.Locality
		service *clustermesh.Routing
		want    string
	}{
		{"no setting", plan.Locality{}, nil, "10.1.1.10:8080"},
		{"the configuration has tiers", inRegion, nil, "10.1.1.10:8080 10.1.2.10:8080"},
		{"the Service has tiers", inRegion, &clustermesh.Routing{Tiers: []string{"node", "clusterset"}}, "10.1.1.10:8080"},
		{"the Service says something else", inRegion, &clustermesh.Routing{MinReady: clustermesh.MinReady{Count: 1}}, "10.1.1.10:8080 10.1.2.10:8080"},
		{"the configuration prefers", c, nil, "10.3.1.10:8080 10.3.2.10:8080"},
		{"the Service prefers", c, &clustermesh.Routing{Prefer: []clustermesh.ClusterName{"b"}}, "10.2.1.10:8080 10.2.2.10:8080"},
	} {
		s := clusterset()
		edit(&s, "a", "", func(c *clustermesh.Content) { c.Exports[0].Routing = tc.service })
		r := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Locality: tc.config})
		if got := backends(r); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

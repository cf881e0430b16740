package plan_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// Imports obey the oldest export's traffic policies.
func TestPlanPolicies(t *testing.T) {
	oldest := func(f func(*clustermesh.Export)) clustermesh.State {
		s := clusterset()
		edit(&s, "a", "", func(c *clustermesh.Content) { f(&c.Exports[0]) })
		return s
	}
	local := oldest(func(e *clustermesh.Export) { e.InternalTrafficPolicy = "Local" })
	if got := backends(planFor(local)); got != "10.1.1.10:8080" {
		t.Errorf("policy Local: %s", got)
	}
	edit(&local, "a", "n1", unready)
	if r := planFor(local); backends(r) != "" || len(r.Desired.Frontends) != 1 {
		t.Errorf("policy Local without an own pod: %v, want a frontend that refuses", r.Desired.Frontends)
	}
	zone := oldest(func(e *clustermesh.Export) { e.TrafficDistribution = "PreferSameZone" })
	edit(&zone, "b", "n2", func(c *clustermesh.Content) { c.Node.Locality = clustermesh.Locality{Region: "a", Zone: "a1"} })
	if got := backends(planFor(zone)); got != "10.1.1.10:8080 10.2.2.10:8080" {
		t.Errorf("PreferSameZone: %s", got)
	}
}

// TestUnserved: an import is unserved if no endpoint of any cluster takes connections. That none of this node
// does is no matter.
func TestUnserved(t *testing.T) {
	s := clusterset()
	if got := planFor(s).Unserved(); len(got) > 0 {
		t.Errorf("%v is unserved", got[0].Service)
	}
	for _, n := range []string{"a", "b", "c"} {
		for o := range s.Records.Of(clustermesh.ClusterName(n)) {
			if o.Node != "" {
				edit(&s, n, string(o.Node), unready)
			}
		}
	}
	if got := planFor(s).Unserved(); len(got) != 1 || got[0].Service.String() != "default/serve" {
		t.Errorf("unserved are %v, want default/serve", got)
	}
	edit(&s, "a", "", func(c *clustermesh.Content) { c.Exports[0].InternalTrafficPolicy = "Local" })
	if got := planFor(s).Unserved(); len(got) > 0 {
		t.Errorf("policy Local: %v is unserved", got[0].Service)
	}
}

// Barred namespaces have no imports here, whatever other clusters export.
func TestPlanBarred(t *testing.T) {
	r := once(clusterset(), plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Barred: clustermesh.Barred{"def*"}})
	if len(r.Imports)+len(r.Desired.Frontends)+len(r.Allocations) != 0 {
		t.Errorf("imports %v, frontends %v", r.Imports, r.Desired.Frontends)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), `ServiceImport default/serve: namespace default is barred by the pattern "def*"`) {
		t.Errorf("problems %v", r.Problems)
	}
}

// An import has the families of its endpoints where all exporters are older daemons that say none.
func TestPlanFamiliesOfOlderPeers(t *testing.T) {
	s := clusterset()
	edit(&s, "c", "n1", func(c *clustermesh.Content) { c.Endpoints[0].Addr = netip.MustParseAddr("fd00:3::10") })
	if got := planFor(s).Imports[0].Families; !slices.Equal(got, []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6}) {
		t.Errorf("families %v", got)
	}
	edit(&s, "b", "", func(c *clustermesh.Content) { c.Exports[0].Families = []clustermesh.Family{clustermesh.IPv6} })
	if got := planFor(s).Imports[0].Families; !slices.Equal(got, []clustermesh.Family{clustermesh.IPv6}) {
		t.Errorf("families %v: want what an export says", got)
	}
}

// A proxy knows no shares, so what kube-proxy serves follows a drain when it is over.
func TestForClusterDrains(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	s := clusterset()
	edit(&s, "a", "", func(c *clustermesh.Content) { c.Drain = &clustermesh.Drain{Since: start.Unix(), Over: 100} })
	for after, want := range map[time.Duration]string{50 * time.Second: "a a", 100 * time.Second: "b b c c"} {
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, ramping)
		p.Now = start.Add(after)
		var used []string
		for _, v := range p.plan(s).Imports[0].ForCluster()[0].Choice.Verdicts {
			if v.Weight > 0 {
				used = append(used, string(v.Cluster))
			}
		}
		if got := strings.Join(used, " "); got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
}

// TestNodeDrainByLeader: a node whose daemon is down does not say that it is drained. Its cluster's leader
// does.
func TestNodeDrainByLeader(t *testing.T) {
	s := clusterset()
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}})
	used := func() string {
		var out []string
		for _, b := range p.plan(s).Desired.Frontends[0].Backends {
			out = append(out, b.IP.String())
		}
		return strings.Join(out, " ")
	}
	before := used()
	edit(&s, "a", "", func(c *clustermesh.Content) { c.Drains = []clustermesh.NodeDrain{{Node: "n1"}} })
	drained := used()
	edit(&s, "a", "", func(c *clustermesh.Content) { c.Drains = nil })
	if after := used(); drained == before || after != before {
		t.Errorf("before %s, drained %s, after %s", before, drained, after)
	}
}

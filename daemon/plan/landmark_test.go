package plan_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// live gives a node one more address.
func live(s *clustermesh.State, cluster, node, addr string) {
	edit(s, cluster, node, func(c *clustermesh.Content) {
		c.Node.Addresses = append(slices.Clone(c.Node.Addresses), netip.MustParseAddr(addr))
	})
}

// warnings returns the Problems of things that others claim too.
func warnings(r plan.Result) (out []clustermesh.Problem) {
	for _, p := range r.Problems {
		if p.Code == problem.Contested {
			out = append(out, p)
		}
	}
	return out
}

// losses returns the other Problems.
func losses(r plan.Result) []clustermesh.Problem {
	return slices.DeleteFunc(slices.Clone(r.Problems), func(p clustermesh.Problem) bool { return p.Code == problem.Contested })
}

// TestLandmarkOfTheCluster: a node's address in another node's pod range takes neither its sources from it nor
// its packets, in its cluster and in others; one Problem names both.
func TestLandmarkOfTheCluster(t *testing.T) {
	for _, tc := range []struct{ cluster, pods, addr string }{{"a", "10.1.1.0/24", "10.1.1.200"}, {"b", "10.2.1.0/24", "10.2.1.200"}} {
		s := clusterset()
		before := on(s, plan.Config{Mesh: true})
		live(&s, tc.cluster, "n2", tc.addr)
		r := on(s, plan.Config{Mesh: true})
		if !slices.Equal(routed(r), routed(before)) || !slices.Equal(r.Desired.Sources.Prefixes, before.Desired.Sources.Prefixes) {
			t.Errorf("%s: routed %v and sources %v, were %v and %v", tc.addr, routed(r), r.Desired.Sources.Prefixes, routed(before), before.Desired.Sources.Prefixes)
		}
		if got := warnings(r); len(r.Problems) != 1 || len(got) != 1 || got[0].Object != "node "+tc.cluster+"/n2" || got[0].Field != "addresses" ||
			!strings.Contains(got[0].Message, tc.addr+" lies inside "+tc.pods+", where node "+tc.cluster+"/n1 has its pods") {
			t.Errorf("%s: problems %v", tc.addr, r.Problems)
		}
	}
}

// TestLandmarkIsLate: a third cluster's word takes no prefix from a node that had it. In a first plan, no node gets
// the prefix.
func TestLandmarkIsLate(t *testing.T) {
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: true})
	s := clusterset()
	p.plan(s)
	live(&s, "c", "n1", "10.2.1.200")
	if got, _ := entered(p.plan(s), "10.2.1.0/24"); got != "b/n1" {
		t.Errorf("it is %q's, who had it", got)
	}
	if got, _ := entered(planFor(s), "10.2.1.0/24"); got != "" {
		t.Errorf("in a first plan it is %q's", got)
	}
}

// TestNestedIsTold: a prefix inside another node's of its cluster gets its packets, and a warning names both.
func TestNestedIsTold(t *testing.T) {
	s := clusterset()
	pods(&s, "b", "n2", "10.2.2.0/24", "10.2.1.77/32", "10.2.1.78/32")
	r := planFor(s)
	if told := warnings(r); len(r.Problems) != 1 || len(told) != 1 || !told[0].Warning ||
		!strings.HasPrefix(told[0].String(), "node b/n2: prefixes: 10.2.1.77/32 lies inside 10.2.1.0/24 of node b/n1, and gets the packets to addresses there (and 1 more") {
		t.Errorf("problems %v", r.Problems)
	}
	if got, _ := entered(r, "10.2.1.77/32"); got != "b/n2" {
		t.Errorf("it is %q's", got)
	}
}

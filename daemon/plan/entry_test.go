package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// enter makes nodes of a cluster the entry to ClusterIPs.
func enter(s *clustermesh.State, cluster string, nodes []string, texts ...string) {
	for _, n := range nodes {
		edit(s, cluster, n, func(c *clustermesh.Content) {
			c.Node.ClusterIPs = nil
			for _, p := range texts {
				c.Node.ClusterIPs = append(c.Node.ClusterIPs, netip.MustParsePrefix(p))
			}
			c.Node.Prefixes = slices.Concat(c.Node.Prefixes, c.Node.ClusterIPs)
		})
	}
}

// entered returns which peer has a prefix, and whether a route leads to it.
func entered(r plan.Result, p string) (peer string, is bool) {
	for _, x := range r.Desired.Peers {
		if slices.Contains(x.AllowedIPs, netip.MustParsePrefix(p)) {
			peer += x.Name
		}
	}
	return peer, slices.Contains(routed(r), p)
}

// TestEntry: ClusterIPs of another cluster are routed to the live node of the lowest name that is the entry
// to them. The others stand by, which is no Problem.
func TestEntry(t *testing.T) {
	const services = "10.96.0.0/16"
	s := clusterset()
	enter(&s, "b", []string{"n1", "n2"}, services)
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: true})
	p.ClusterIPs = []netip.Prefix{netip.MustParsePrefix("10.97.0.0/20")}
	r := p.plan(s)
	if peer, is := entered(r, services); peer != "b/n1" || !is || len(r.Problems) > 0 {
		t.Errorf("peer %q, routed %v, problems %v", peer, is, r.Problems)
	}
	dead := clusterset()
	enter(&dead, "b", []string{"n1", "n2"}, services)
	kill("b", "n1")(&dead)
	if peer, is := entered(p.plan(dead), services); peer != "b/n2" || !is {
		t.Errorf("with a dead entry: peer %q, routed %v", peer, is)
	}
	if len(r.Desired.Sources.ClusterIPs) > 0 {
		t.Errorf("this node became an entry: %+v", r.Desired.Sources)
	}
	pods(&s, "b", "n2", "10.2.2.0/24", services)
	edit(&s, "b", "n2", func(c *clustermesh.Content) { c.Node.ClusterIPs = nil })
	if r := p.plan(s); len(losses(r)) != 1 || len(warnings(r)) != 1 || losses(r)[0].Code != problem.PrefixOverlap {
		t.Errorf("a node that says that its pods are there: %v", r.Problems)
	}
}

// TestEntryStaysOut: what overlaps the ClusterIPs of the reader's own cluster is not routed, and a Problem
// says so. When they are known to be elsewhere, it is.
func TestEntryStaysOut(t *testing.T) {
	const services = "10.96.0.0/12"
	s := clusterset()
	enter(&s, "b", []string{"n1"}, services)
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: true})
	p.ClusterIPs = []netip.Prefix{netip.MustParsePrefix("10.97.0.0/20")}
	r := p.plan(s)
	if peer, is := entered(r, services); peer != "" || is {
		t.Errorf("peer %q has it, and it is routed: %v", peer, is)
	}
	if found := forbidden(r); len(found) != 1 || found[0].Object != "node b/n1" || !strings.Contains(found[0].Message, "10.97.0.0/20, where this cluster has ClusterIPs of its own") {
		t.Errorf("problems %v", r.Problems)
	}
	p.ClusterIPs = []netip.Prefix{netip.MustParsePrefix("10.200.0.0/20")}
	if peer, is := entered(p.plan(s), services); peer != "b/n1" || !is {
		t.Errorf("after that: peer %q, routed %v", peer, is)
	}
}

// TestEntryAtHome: the entry's own cluster has its ClusterSetIPs among the ClusterIPs, and its guard knows
// which prefixes are no pods'.
func TestEntryAtHome(t *testing.T) {
	const services = "241.1.0.0/16" // the fixture's address is one
	s := clusterset()
	enter(&s, "a", []string{"n1", "n2"}, services)
	r := on(s, plan.Config{Mesh: true})
	if got := fmt.Sprint(r.Desired.Sources.ClusterIPs, r.Desired.Sources.Prefixes); got != "[241.1.0.0/16] [10.1.1.0/24]" || len(r.Problems) > 0 {
		t.Errorf("sources %s, problems %v", got, r.Problems)
	}
	if peer, is := entered(r, services); peer != "" || is {
		t.Errorf("its own ClusterIPs go to %q, routed %v", peer, is)
	}
	// A pods' prefix that covers the address of a Service is a mistake as before.
	s = clusterset()
	pods(&s, "a", "n1", "10.1.1.0/24", services)
	if r := on(s, plan.Config{Mesh: true}); len(forbidden(r)) != 1 {
		t.Errorf("problems %v", r.Problems)
	}
}

// TestPartOfEntry: a longer prefix takes no Service's address from the node that is the entry to it.
func TestPartOfEntry(t *testing.T) {
	const services, one = "10.96.0.0/16", "10.96.0.10/32"
	s := clusterset()
	enter(&s, "b", []string{"n1"}, services)
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: true})
	p.plan(s)
	pods(&s, "b", "n2", "10.2.2.0/24", one)
	r := p.plan(s)
	if peer, is := entered(r, one); peer != "" || is || len(losses(r)) != 1 || len(warnings(r)) != 1 {
		t.Errorf("%s is %q's: %v", one, peer, r.Problems)
	}
	enter(&s, "b", []string{"n2"}, one) // nor if it says that it is an entry
	if peer, _ := entered(p.plan(s), one); peer != "" {
		t.Errorf("%s is %q's", one, peer)
	}
}

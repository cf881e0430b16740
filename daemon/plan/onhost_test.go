package plan_test

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// onHost moves the pod of a node to the node's own network.
func onHost(c *clustermesh.Content) {
	c.Endpoints[0].Addr, c.Endpoints[0].OnHost = c.Node.Addresses[0], true
}

// Pods on the network of another cluster's node are reached at the node's address inside the tunnel;
// those of this cluster, and those without a tunnel, at their own.
func TestPlanPodsOnTheHost(t *testing.T) {
	s := clusterset()
	for _, n := range []string{"n1", "n2"} {
		edit(&s, "a", n, unready)
		edit(&s, "c", n, unready)
		edit(&s, "b", n, onHost)
	}
	if got := backends(planFor(s)); got != "10.2.1.1:8080 10.2.2.1:8080" {
		t.Errorf("backends %s", got)
	}
	for _, addr := range planFor(s).Imports[0].Behind(http) {
		if addr.Addr() == netip.MustParseAddr("172.31.2.1") {
			t.Error("its traffic would be looked for at the node's own address")
		}
	}
	// So does kube-proxy, by the slices of the derived Service. Import slices list pods' own addresses.
	r := planFor(s).Imports[0]
	for _, c := range r.ForCluster() {
		for _, v := range c.Choice.Verdicts {
			if v.Cluster == "b" && !strings.HasPrefix(v.Addr.String(), "10.2.") {
				t.Errorf("kube-proxy would send to %s", v.Addr)
			}
		}
	}
	for _, e := range r.Endpoints() {
		if e.Cluster == "b" && !strings.HasPrefix(e.Addr.String(), "172.31.2.") {
			t.Errorf("an import slice would list %s", e.Addr)
		}
	}
	without := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}})
	if got := backends(without); got != "172.31.2.1:8080 172.31.2.2:8080" {
		t.Errorf("without a mesh: backends %s", got)
	}
	edit(&s, "a", "n2", func(c *clustermesh.Content) { onHost(c); c.Endpoints[0].Ready = true })
	if got := backends(planFor(s)); !strings.Contains(got, "172.31.1.2:8080") {
		t.Errorf("in the own cluster: backends %s", got)
	}
	// An IPv6 pod is not at an IPv4 address.
	edit(&s, "b", "n1", func(c *clustermesh.Content) { c.Endpoints[0].Addr = netip.MustParseAddr("2001:db8::1") })
	if got := backends(planFor(s)); strings.Contains(got, "10.2.1.1:8080") {
		t.Errorf("another family: backends %s", got)
	}
}

// Where a dead machine's pods were reached is gone.
func TestPlanGoneOnTheHost(t *testing.T) {
	s := clusterset()
	edit(&s, "b", "n1", onHost)
	dead := clustermesh.Origin{Cluster: "b", Node: "n1"}
	s.Contacts = s.Contacts.With(dead, clustermesh.Silent)
	for _, witness := range []string{"a", "b", "c"} {
		edit(&s, witness, "n2", func(c *clustermesh.Content) { c.Silent = []clustermesh.Silence{{Origin: dead, Epoch: 1}} })
	}
	if got := planFor(s).Desired.Gone; !slices.Contains(got, netip.MustParseAddr("10.2.1.1")) {
		t.Errorf("gone %v", got)
	}
}

// A node opens the ports of its own pods on the host, also of those that come later.
func TestPlanListeners(t *testing.T) {
	s := clusterset()
	planner := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	if got := planner.plan(s).Desired.Sources.Listeners; got != nil {
		t.Errorf("listeners %v", got)
	}
	next := clusterset()
	edit(&next, "a", "n1", func(c *clustermesh.Content) {
		onHost(c)
		c.Endpoints[0].Ports = append(slices.Clone(c.Endpoints[0].Ports), clustermesh.EndpointPort{Name: "dns", Proto: l4.UDP, Port: 53},
			clustermesh.EndpointPort{Name: "sctp", Proto: l4.SCTP, Port: 9})
		again := c.Endpoints[0]
		again.Service.Name = "other"
		c.Endpoints = append(c.Endpoints, again)
	})
	at := netip.MustParseAddr("172.31.1.1")
	want := []datapath.Listener{{Addr: at, Port: 8080, Proto: l4.TCP}, {Addr: at, Port: 53, Proto: l4.UDP}}
	if got := planner.plan(next).Desired.Sources.Listeners; !reflect.DeepEqual(got, want) {
		t.Errorf("listeners %v, want %v", got, want)
	}
}

package mirror_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/internal/l4"
)

// offering is what cluster c1 says: Services cart, for c2, and front, for c3, with pods on two nodes.
func offering(pods int) clustermesh.State {
	cart := clustermesh.ServiceName{Namespace: "shop", Name: "cart"}
	front := clustermesh.ServiceName{Namespace: "shop", Name: "front"}
	ports := []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}
	s := clustermesh.State{Records: map[clustermesh.Origin]clustermesh.Record{
		{Cluster: "c1"}: {Content: clustermesh.Content{Mirrors: []clustermesh.Export{
			{Service: cart, Type: clustermesh.ClusterSetIP, Ports: ports, Policy: "p", To: []clustermesh.ClusterName{"c2"}, Labels: map[string]string{"app": "cart"}},
			{Service: front, Type: clustermesh.Headless, Ports: ports, Policy: "p", To: []clustermesh.ClusterName{"c3"}},
		}}},
	}}
	for n := range 2 {
		o := clustermesh.Origin{Cluster: "c1", Node: clustermesh.NodeName(fmt.Sprint("n", n))}
		r := clustermesh.Record{Content: clustermesh.Content{Node: &clustermesh.Node{Name: o.Node}}}
		for i := range pods {
			r.Content.Endpoints = append(r.Content.Endpoints, clustermesh.Endpoint{
				Service: cart, Addr: netip.AddrFrom4([4]byte{10, 1, byte(n), byte(i)}), Node: o.Node, Ready: i > 0, Serving: i > 0, Zone: "z",
				Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
			})
		}
		s.Records[o] = r
	}
	return s
}

// TestOffer: what a cluster offers becomes mirrors in the cluster that it is for, and nowhere else.
func TestOffer(t *testing.T) {
	s := offering(60)
	p := mirroring("p", func(s *policy.Spec) { s.Name = "{name}-{cluster}" })
	p.Spec.Select[0].Labels = nil
	plan := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(s, "c1", "c2")}, cluster("c2"))
	if len(plan.Mirrors) != 1 || plan.Mirrors[0].Service.Name != "cart-c1" || plan.Mirrors[0].Service.Labels["app"] != "cart" {
		t.Fatalf("%+v", plan)
	}
	m := plan.Mirrors[0]
	seen, ready := map[string]bool{}, 0
	for _, s := range m.Slices {
		if len(s.Endpoints) > 100 || *s.Ports[0].Port != 8080 || s.Labels[mirror.LabelSource] != "c1" {
			t.Errorf("slice %+v", s)
		}
		for _, e := range s.Endpoints {
			seen[e.Addresses[0]] = true
			if *e.Conditions.Ready {
				ready++
			}
		}
	}
	if len(m.Slices) != 2 || len(seen) != 120 || ready != 118 {
		t.Errorf("%d slices, %d endpoints, %d of them ready", len(m.Slices), len(seen), ready)
	}
	again := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(s, "c1", "c2")}, cluster("c2"))
	if ops := mirror.Diff(set, again, apply(cluster("c2"), mirror.Diff(set, plan, cluster("c2"), known)), known); len(ops) > 0 {
		t.Errorf("the same offer leads to other objects: %v", ops)
	}
	headless := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(s, "c1", "c3")}, cluster("c3"))
	if len(headless.Mirrors) != 1 || headless.Mirrors[0].Service.Spec.ClusterIP != "None" || len(headless.Mirrors[0].Slices) != 0 {
		t.Errorf("headless: %+v", headless.Mirrors)
	}
	other := mirroring("q")
	if plan := mirror.Wanted(set, []policy.Policy{other}, []mirror.Cluster{mirror.Offer(s, "c1", "c2")}, cluster("c2")); len(plan.Mirrors) != 0 {
		t.Errorf("another policy gets %+v", plan.Mirrors)
	}
	elsewhere := mirroring("p", func(s *policy.Spec) { s.Select = []policy.Term{{Namespaces: []string{"other"}}} })
	if plan := mirror.Wanted(set, []policy.Policy{elsewhere}, []mirror.Cluster{mirror.Offer(s, "c1", "c2")}, cluster("c2")); len(plan.Mirrors) != 0 {
		t.Errorf("what this cluster's own document does not select comes: %+v", plan.Mirrors)
	}
}

// TestBarredTarget: a template cannot lead into a namespace that takes no part.
func TestBarredTarget(t *testing.T) {
	to := cluster("c2")
	to.Namespaces["kube-system"], to.Namespaces["team-a"], to.Barred = true, true, clustermesh.Barred{"team-*"}
	for _, ns := range []string{"kube-system", "team-a"} {
		p := mirroring("p", func(s *policy.Spec) { s.Namespace = ns })
		plan := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(offering(1), "c1", "c2")}, to)
		if len(plan.Mirrors) != 0 || len(plan.Skipped) != 1 || plan.Skipped[0].Reason != policy.Barred {
			t.Errorf("%s: %+v", ns, plan)
		}
	}
}

// TestPolicyGone: while a source is unknown, its mirrors stay, unless their policy goes.
func TestPolicyGone(t *testing.T) {
	p := mirroring("p")
	unknown := func(c string) bool { return c == "c1" }
	offer := []mirror.Cluster{mirror.Offer(offering(2), "c1", "c2")}
	have := apply(cluster("c2"), mirror.Diff(set, mirror.Wanted(set, []policy.Policy{p}, offer, cluster("c2")), cluster("c2"), known))
	if ops := mirror.Diff(set, mirror.Wanted(set, []policy.Policy{p}, nil, have), have, unknown); len(ops) > 0 {
		t.Errorf("unknown: %v", ops)
	}
	var verbs []string
	for _, o := range mirror.Diff(set, mirror.Wanted(set, nil, nil, have), have, unknown) {
		verbs = append(verbs, string(o.Verb))
	}
	if !slices.Equal(verbs, []string{"delete", "delete"}) {
		t.Errorf("the policy is gone: %v", verbs)
	}
}

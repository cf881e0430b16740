package mirror_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/internal/l4"
)

// offering is what cluster c1 publishes: Services cart, for c2, and front, for c3, with pods on two
// nodes.
func offering(pods int) clustermesh.State {
	cart := clustermesh.ServiceName{Namespace: "shop", Name: "cart"}
	front := clustermesh.ServiceName{Namespace: "shop", Name: "front"}
	ports := []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}
	s := clustermesh.State{Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{
		{Cluster: "c1"}: {Content: clustermesh.Content{Mirrors: []clustermesh.Export{
			{Service: cart, Type: clustermesh.ClusterSetIP, Ports: ports, Policy: "p", To: []clustermesh.ClusterName{"c2"}, Labels: map[string]string{"app": "cart"}},
			{Service: front, Type: clustermesh.Headless, Ports: ports, Policy: "p", To: []clustermesh.ClusterName{"c3"}},
		}}},
	})}
	for n := range 2 {
		o := clustermesh.Origin{Cluster: "c1", Node: clustermesh.NodeName(fmt.Sprint("n", n))}
		r := clustermesh.Record{Origin: o, Content: clustermesh.Content{Node: &clustermesh.Node{Name: o.Node}}}
		for i := range pods {
			r.Content.Endpoints = append(r.Content.Endpoints, clustermesh.Endpoint{
				Service: cart, Addr: netip.AddrFrom4([4]byte{10, 1, byte(n), byte(i)}), Node: o.Node, Ready: i > 0, Serving: i > 0, Zone: "z",
				Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
			})
		}
		s.Records = s.Records.With(o, r)
	}
	return s
}

// TestOffer: what a cluster offers becomes mirrors in the cluster that it is for, and nowhere else.
func TestOffer(t *testing.T) {
	s := offering(60)
	p := mirroring("p", func(s *policy.Spec) { s.Name = "{name}-{cluster}" })
	p.Spec.Select[0].Labels = nil
	plan := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(s, "c1", "c2", nil)}, cluster("c2"))
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
	again := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(s, "c1", "c2", nil)}, cluster("c2"))
	if ops := mirror.Diff(set, again, apply(cluster("c2"), mirror.Diff(set, plan, cluster("c2"), known)), known); len(ops) > 0 {
		t.Errorf("the same offer leads to other objects: %v", ops)
	}
	headless := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(s, "c1", "c3", nil)}, cluster("c3"))
	if len(headless.Mirrors) != 1 || headless.Mirrors[0].Service.Spec.ClusterIP != "None" || len(headless.Mirrors[0].Slices) != 0 {
		t.Errorf("headless: %+v", headless.Mirrors)
	}
	other := mirroring("q")
	if plan := mirror.Wanted(set, []policy.Policy{other}, []mirror.Cluster{mirror.Offer(s, "c1", "c2", nil)}, cluster("c2")); len(plan.Mirrors) != 0 {
		t.Errorf("another policy gets %+v", plan.Mirrors)
	}
	elsewhere := mirroring("p", func(s *policy.Spec) { s.Select = []policy.Term{{Namespaces: []string{"other"}}} })
	if plan := mirror.Wanted(set, []policy.Policy{elsewhere}, []mirror.Cluster{mirror.Offer(s, "c1", "c2", nil)}, cluster("c2")); len(plan.Mirrors) != 0 {
		t.Errorf("what this cluster's own document does not select comes: %+v", plan.Mirrors)
	}
}

// Two listeners at one address stay two in a mirror, each with its own readiness and hostname. No
// slice has a port's name twice, which an API server refuses. Of two records that list one
// listener, the one in which it is ready counts.
func TestOfferListeners(t *testing.T) {
	cart := clustermesh.ServiceName{Namespace: "shop", Name: "cart"}
	listener := func(host string, ready bool, ports ...uint16) clustermesh.Endpoint {
		e := clustermesh.Endpoint{Service: cart, Addr: netip.MustParseAddr("10.1.0.1"), Hostname: host, Ready: ready, Serving: ready}
		for _, p := range ports {
			e.Ports = append(e.Ports, clustermesh.EndpointPort{Name: "http", Proto: l4.TCP, Port: p})
		}
		return e
	}
	for _, c := range []struct {
		what   string
		n0, n1 []clustermesh.Endpoint
		want   []string
	}{
		{"one is ready", []clustermesh.Endpoint{listener("w-0", true, 8080), listener("w-1", false, 8081)}, nil, []string{"w-0 8080 true", "w-1 8081 false"}},
		{"alike", []clustermesh.Endpoint{listener("", true, 8080, 8081)}, nil, []string{" 8080 true", " 8081 true"}},
		{"one moves", []clustermesh.Endpoint{listener("w-0", false, 8080)}, []clustermesh.Endpoint{listener("w-0", true, 8080)}, []string{"w-0 8080 true"}},
	} {
		s := offering(0)
		for node, endpoints := range map[clustermesh.NodeName][]clustermesh.Endpoint{"n0": c.n0, "n1": c.n1} {
			o := clustermesh.Origin{Cluster: "c1", Node: node}
			r := s.Records.Get(o)
			r.Content.Endpoints = endpoints
			s.Records = s.Records.With(o, r)
		}
		var got []string
		for _, slice := range mirror.Offer(s, "c1", "c2", nil).Slices {
			for _, p := range slice.Ports {
				for _, e := range slice.Endpoints {
					host := ""
					if e.Hostname != nil {
						host = *e.Hostname
					}
					got = append(got, fmt.Sprint(host, " ", *p.Port, " ", *e.Conditions.Ready))
				}
			}
			if len(slice.Ports) != 1 {
				t.Errorf("%s: ports %v", c.what, slice.Ports)
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestOfferClusterIPs: a mirror leads to the ClusterIP that its cluster publishes, if a node there is
// the entry to it. Otherwise it is left out, with what to do.
func TestOfferClusterIPs(t *testing.T) {
	p := mirroring("p", func(s *policy.Spec) { s.Endpoints = policy.ClusterIP })
	for name, c := range map[string]struct {
		ips   []string
		entry string
		own   string
		want  []string
		why   string
	}{
		"an entry":           {ips: []string{"10.96.0.9"}, entry: "10.96.0.0/16", own: "10.97.0.0/20", want: []string{"10.96.0.9"}},
		"a /32":              {ips: []string{"10.96.0.9"}, entry: "10.96.0.9/32", want: []string{"10.96.0.9"}},
		"one family":         {ips: []string{"fd00:96::9", "10.96.0.9"}, entry: "10.96.0.0/16", want: []string{"10.96.0.9"}},
		"no entry":           {ips: []string{"10.96.0.9"}, why: "no node of cluster c1 is the entry to 10.96.0.9"},
		"an entry to others": {ips: []string{"10.96.0.9"}, entry: "10.96.1.0/24", why: "set annotation strait.io/cluster-ips of a Node there"},
		"this cluster's own": {ips: []string{"10.96.0.9"}, entry: "10.96.0.0/16", own: "10.96.128.0/20", why: "must not overlap this cluster's"},
		"an unpublished one": {entry: "10.96.0.0/16", why: "cluster c1 does not publish its ClusterIP"},
	} {
		s := offering(2)
		mirrors := s.Records.Get(clustermesh.Origin{Cluster: "c1"}).Content.Mirrors
		for _, ip := range c.ips {
			mirrors[0].IPs = append(mirrors[0].IPs, netip.MustParseAddr(ip))
		}
		if c.entry != "" {
			s.Records.Get(clustermesh.Origin{Cluster: "c1", Node: "n1"}).Content.Node.ClusterIPs = []netip.Prefix{netip.MustParsePrefix(c.entry)}
		}
		var own []netip.Prefix
		if c.own != "" {
			own = append(own, netip.MustParsePrefix(c.own))
		}
		plan := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(s, "c1", "c2", own)}, cluster("c2"))
		var got []string
		for _, m := range plan.Mirrors {
			for _, s := range m.Slices {
				if got = append(got, s.Endpoints[0].Addresses...); len(s.Endpoints) != 1 || !*s.Endpoints[0].Conditions.Ready || *s.Ports[0].Port != 80 {
					t.Errorf("%s: slice %+v", name, s)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: leads to %v, want %v", name, got, c.want)
		}
		if c.why == "" && len(plan.Skipped) > 0 || c.why != "" && (len(plan.Skipped) != 1 || plan.Skipped[0].Reason != policy.NoEntry || !strings.Contains(plan.Skipped[0].Message, c.why)) {
			t.Errorf("%s: skipped %+v, want %q", name, plan.Skipped, c.why)
		}
	}
	plan := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(offering(1), "c1", "c3", nil)}, cluster("c3"))
	if len(plan.Skipped) != 1 || plan.Skipped[0].Reason != policy.NotSupported {
		t.Errorf("headless: %+v", plan.Skipped)
	}
}

// TestBarredTarget: a template cannot lead into a namespace that takes no part.
func TestBarredTarget(t *testing.T) {
	to := cluster("c2")
	to.Namespaces["kube-system"], to.Namespaces["team-a"], to.Barred = true, true, clustermesh.Barred{"team-*"}
	for _, ns := range []string{"kube-system", "team-a"} {
		p := mirroring("p", func(s *policy.Spec) { s.Namespace = ns })
		plan := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{mirror.Offer(offering(1), "c1", "c2", nil)}, to)
		if len(plan.Mirrors) != 0 || len(plan.Skipped) != 1 || plan.Skipped[0].Reason != policy.Barred {
			t.Errorf("%s: %+v", ns, plan)
		}
	}
}

// TestPolicyGone: while a source is unknown, its mirrors stay, unless their policy goes.
func TestPolicyGone(t *testing.T) {
	p := mirroring("p")
	unknown := func(c string) bool { return c == "c1" }
	offer := []mirror.Cluster{mirror.Offer(offering(2), "c1", "c2", nil)}
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

package plan_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/l4"
)

// An address counts once: per cluster the record in which it is good, of several clusters the one
// that has the address, else one where it is good, else the own.
func TestDoubleEndpoints(t *testing.T) {
	pod := netip.MustParseAddr("10.2.1.10")
	mirror := func(ready bool) clustermesh.Endpoint {
		return clustermesh.Endpoint{Service: serve, Addr: pod, Ready: ready, Serving: ready, Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}}
	}
	add := func(s *clustermesh.State, cluster, node string, e clustermesh.Endpoint) {
		edit(s, cluster, node, func(c *clustermesh.Content) { c.Endpoints = append(c.Endpoints, e) })
	}
	used := func(s *clustermesh.State) map[string]string {
		r := once(*s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{})
		out := map[string]string{}
		for _, v := range r.Globals[0].Frontends()[0].Choice.Verdicts {
			if v.Addr.Addr() == pod && v.Weight > 0 {
				out[string(v.Cluster)] += v.Reason
			}
		}
		for _, b := range r.Desired.Frontends[0].Backends {
			if b.Weight != 1 {
				t.Errorf("backend %v counts %d times", b.AddrPort(), b.Weight)
			}
		}
		return out
	}
	s := globalset()
	add(&s, "a", "", mirror(true))
	if got := used(&s); len(got) != 1 || got["b"] == "" {
		t.Errorf("own mirror of another cluster's pod: used for %v", got)
	}
	for _, o := range []clustermesh.NodeName{"n1", "n2"} {
		edit(&s, "b", string(o), func(c *clustermesh.Content) { c.Node.Prefixes = nil })
	}
	if got := used(&s); len(got) != 1 || got["a"] == "" {
		t.Errorf("own mirror of a pod of which no node knows whose it is: used for %v", got)
	}
	s = globalset()
	add(&s, "c", "n1", mirror(true))
	edit(&s, "b", "n1", unready)
	if got := used(&s); len(got) != 0 {
		t.Errorf("another cluster says that a pod is ready which its own says is not: used for %v", got)
	}
	s = globalset()
	add(&s, "a", "", mirror(false))
	if got := used(&s); len(got) != 1 || got["b"] == "" {
		t.Errorf("own mirror that is not ready: used for %v", got)
	}
	s = globalset()
	add(&s, "b", "", mirror(false))
	if got := used(&s); len(got) != 1 || got["b"] == "" {
		t.Errorf("twice in one cluster, once ready: used for %v", got)
	}
	r := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{})
	if n := len(r.Globals[0].Endpoints()); n != 4 {
		t.Errorf("%d endpoints of 4 pods, one of which its cluster lists twice", n)
	}
}

// Two listeners at one address, as of two processes in the host's network, are two endpoints: each
// is used while it is ready itself, however many records list it.
func TestListenersOfOneAddress(t *testing.T) {
	listener := func(name string, port uint16, ready bool) clustermesh.Endpoint {
		return clustermesh.Endpoint{Service: serve, Addr: netip.MustParseAddr("10.2.1.10"), Node: "n1", Hostname: name, Pod: name, Ready: ready, Serving: ready,
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: port}}}
	}
	for _, c := range []struct {
		what     string
		n1, n2   []clustermesh.Endpoint // of two records of cluster b: a pod's address can be in two while it moves
		backends string
		listed   int
	}{
		{"one is ready", []clustermesh.Endpoint{listener("w-0", 8080, true), listener("w-1", 8081, false)}, nil, "10.2.1.10:8080", 2},
		{"the other is", []clustermesh.Endpoint{listener("w-0", 8080, false), listener("w-1", 8081, true)}, nil, "10.2.1.10:8081", 2},
		{"both are", []clustermesh.Endpoint{listener("w-0", 8080, true), listener("w-1", 8081, true)}, nil, "10.2.1.10:8080 10.2.1.10:8081", 2},
		{"one moves", []clustermesh.Endpoint{listener("w-0", 8080, true), listener("w-1", 8081, true)}, []clustermesh.Endpoint{listener("w-1", 8081, true)},
			"10.2.1.10:8080 10.2.1.10:8081", 2},
		{"one moves, and is ready in its next record only", []clustermesh.Endpoint{listener("w-1", 8081, false)}, []clustermesh.Endpoint{listener("w-0", 8080, true), listener("w-1", 8081, true)},
			"10.2.1.10:8080 10.2.1.10:8081", 2},
		{"each in its own record", []clustermesh.Endpoint{listener("w-0", 8080, true)}, []clustermesh.Endpoint{listener("w-1", 8081, true)},
			"10.2.1.10:8080 10.2.1.10:8081", 2},
	} {
		s := globalset()
		for _, cluster := range []string{"a", "c"} {
			for _, node := range []string{"n1", "n2"} {
				edit(&s, cluster, node, func(c *clustermesh.Content) { c.Endpoints = nil })
			}
		}
		edit(&s, "b", "n1", func(r *clustermesh.Content) { r.Endpoints = c.n1 })
		edit(&s, "b", "n2", func(r *clustermesh.Content) { r.Endpoints = c.n2 })
		r := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{})
		if got := backends(r); got != c.backends {
			t.Errorf("%s: backends %q, want %q", c.what, got, c.backends)
		}
		for _, b := range r.Desired.Frontends[0].Backends {
			if b.Weight != 1 {
				t.Errorf("%s: backend %v counts %d times", c.what, b.AddrPort(), b.Weight)
			}
		}
		if n := len(r.Globals[0].Endpoints()); n != c.listed {
			t.Errorf("%s: %d endpoints, want %d", c.what, n, c.listed)
		}
	}
}

// One pod behind two services counts for both.
func TestOnePodOfTwoServices(t *testing.T) {
	s := clusterset()
	other := clustermesh.ServiceName{Namespace: "default", Name: "other"}
	edit(&s, "b", "", func(c *clustermesh.Content) {
		c.Exports = append(c.Exports, clustermesh.Export{Service: other, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{http}})
	})
	edit(&s, "b", "n2", func(c *clustermesh.Content) {
		e := c.Endpoints[0]
		e.Service = other
		c.Endpoints = append(c.Endpoints, e)
	})
	for _, i := range planFor(s).Imports {
		if want := map[clustermesh.ServiceName]int{serve: 6, other: 1}[i.Service]; len(i.Endpoints()) != want {
			t.Errorf("%s: %d endpoints, want %d", i.Service, len(i.Endpoints()), want)
		}
	}
}

// What the cluster as a whole would use: its own while one is ready, by family, and before it has
// an address.
func TestForCluster(t *testing.T) {
	show := func(s *clustermesh.State) string {
		r := once(*s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{})
		var out []string
		for _, c := range r.Imports[0].ForCluster() {
			line := fmt.Sprint(c.Port, " ", c.Family)
			for _, v := range c.Choice.Verdicts {
				if v.Weight > 0 {
					line += " " + v.Addr.Addr().String()
				}
			}
			out = append(out, line)
		}
		return strings.Join(out, "; ")
	}
	without := func() clustermesh.State {
		s := clusterset()
		edit(&s, "a", "", func(c *clustermesh.Content) { c.Allocations = nil })
		return s
	}
	s := without()
	if got := show(&s); got != "http:80/TCP IPv4 10.1.1.10 10.1.2.10" {
		t.Errorf("own ready: %s", got)
	}
	edit(&s, "b", "n1", func(c *clustermesh.Content) { c.Endpoints[0].Addr = netip.MustParseAddr("fd00:2::10") })
	if got := show(&s); got != "http:80/TCP IPv4 10.1.1.10 10.1.2.10; http:80/TCP IPv6 fd00:2::10" {
		t.Errorf("a family of its own: %s", got)
	}
	edit(&s, "a", "n1", unready)
	edit(&s, "a", "n2", func(c *clustermesh.Content) { c.Endpoints[0].Ready, c.Endpoints[0].Terminating = false, true })
	if got := show(&s); got != "http:80/TCP IPv4 10.2.2.10 10.3.1.10 10.3.2.10; http:80/TCP IPv6 fd00:2::10" {
		t.Errorf("own gone: %s", got)
	}
	edit(&s, "b", "", func(c *clustermesh.Content) { c.Exports = nil })
	edit(&s, "c", "", func(c *clustermesh.Content) { c.Exports = nil })
	if got := show(&s); got != "http:80/TCP IPv4 10.1.2.10" {
		t.Errorf("only a terminating one left (KEP-1669): %s", got)
	}
	s = without()
	edit(&s, "a", "", func(c *clustermesh.Content) {
		c.Exports[0].Ports = []clustermesh.ServicePort{{Name: "http", Proto: l4.SCTP, Port: 80}}
	})
	edit(&s, "a", "n1", func(c *clustermesh.Content) {
		c.Endpoints[0].Ports = []clustermesh.EndpointPort{{Name: "http", Proto: l4.SCTP, Port: 8080}}
	})
	if got := show(&s); got != "http:80/SCTP IPv4 10.1.1.10" {
		t.Errorf("SCTP, which only a proxy serves; the younger exports' TCP port of that name conflicts: %s", got)
	}
}

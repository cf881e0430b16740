package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/l4"
)

// globalset is clusterset with serve as a global service of a and b, with ClusterIPs of their own,
// and c, whose Service of the same name is not global. Nothing is exported.
func globalset() clustermesh.State {
	s := clusterset()
	for i, c := range []string{"a", "b", "c"} {
		edit(&s, c, "", func(r *clustermesh.Content) {
			r.Exports, r.Allocations = nil, nil
			if c != "c" {
				r.Globals = []clustermesh.Global{{Service: serve, Ports: []clustermesh.ServicePort{http}, Shared: true, Affinity: clustermesh.AffinityNone,
					IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i + 1), 5})}}}
			}
		})
	}
	return s
}

// editGlobal changes a cluster's global service.
func editGlobal(s *clustermesh.State, cluster string, f func(*clustermesh.Global)) {
	edit(s, cluster, "", func(c *clustermesh.Content) {
		c.Globals = slices.Clone(c.Globals)
		f(&c.Globals[0])
	})
}

func unshare(s *clustermesh.State, cluster string) {
	editGlobal(s, cluster, func(g *clustermesh.Global) { g.Shared = false })
}

// reach returns the clusters whose pods a cluster's global service uses, by the pods' addresses.
func reach(s clustermesh.State, cluster clustermesh.ClusterName) string {
	r := once(s, plan.Self{Cluster: cluster, Node: "n1"}, plan.Config{})
	out := ""
	for _, f := range r.Desired.Frontends {
		for _, b := range f.Backends {
			if c := string(rune('a' + b.IP.As4()[1] - 1)); !strings.Contains(out, c) {
				out += c
			}
		}
	}
	return out
}

// Cilium's table: who sees whose pods, by who shares; c never takes part, since its Service is not global.
func TestGlobalSharing(t *testing.T) {
	for _, tc := range []struct {
		aShares, bShares bool
		a, b             string
	}{
		{true, true, "ab", "ab"},
		{false, true, "ab", "b"},
		{true, false, "a", "ab"},
		{false, false, "a", "b"},
	} {
		t.Run(fmt.Sprint("a shares ", tc.aShares, ", b shares ", tc.bShares), func(t *testing.T) {
			s := globalset()
			if !tc.aShares {
				unshare(&s, "a")
			}
			if !tc.bShares {
				unshare(&s, "b")
			}
			if a, b, c := reach(s, "a"), reach(s, "b"), reach(s, "c"); a != tc.a || b != tc.b || c != "" {
				t.Errorf("a reaches %q, b %q, c %q; want %q, %q and nothing", a, b, c, tc.a, tc.b)
			}
		})
	}
}

func TestGlobalBackends(t *testing.T) {
	const local, remote = "10.1.1.10:8080 10.1.2.10:8080", "10.2.1.10:8080 10.2.2.10:8080"
	affinity := func(a clustermesh.GlobalAffinity) func(*clustermesh.State) {
		return func(s *clustermesh.State) { editGlobal(s, "a", func(g *clustermesh.Global) { g.Affinity = a }) }
	}
	gone := func(s *clustermesh.State) { edit(s, "a", "n1", unready); edit(s, "a", "n2", unready) }
	ports := func(p clustermesh.ServicePort) func(*clustermesh.State) {
		return func(s *clustermesh.State) {
			editGlobal(s, "b", func(g *clustermesh.Global) { g.Ports = []clustermesh.ServicePort{p} })
		}
	}
	for _, tc := range []struct {
		name    string
		changes []func(*clustermesh.State)
		want    string
		problem string
	}{
		{"affinity none: all alike", nil, local + " " + remote, ""},
		{"affinity unset: the nearest", []func(*clustermesh.State){affinity("")}, "10.1.1.10:8080", ""},
		{"affinity local", []func(*clustermesh.State){affinity("local")}, local, ""},
		{"affinity local, none left", []func(*clustermesh.State){affinity("local"), gone}, remote, ""},
		{"affinity remote", []func(*clustermesh.State){affinity("remote")}, remote, ""},
		{"affinity remote, no cluster shares", []func(*clustermesh.State){affinity("remote"), func(s *clustermesh.State) { unshare(s, "b") }}, local, ""},
		{"another number is another port", []func(*clustermesh.State){ports(clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 81})}, local,
			"Service default/serve: spec.ports[http:80/TCP]: cluster b shares this service without such a port"},
		{"another name is another port", []func(*clustermesh.State){ports(clustermesh.ServicePort{Name: "web", Proto: l4.TCP, Port: 80})}, local, "without such a port"},
		{"policy Local", []func(*clustermesh.State){func(s *clustermesh.State) {
			editGlobal(s, "a", func(g *clustermesh.Global) { g.InternalTrafficPolicy = "Local" })
		}}, "10.1.1.10:8080", ""},
		{"policy Local refuses", []func(*clustermesh.State){gone, func(s *clustermesh.State) {
			editGlobal(s, "a", func(g *clustermesh.Global) { g.InternalTrafficPolicy = "Local" })
		}}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := globalset()
			for _, f := range tc.changes {
				f(&s)
			}
			r := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{})
			if got := backends(r); got != tc.want {
				t.Errorf("backends\n got %s\nwant %s", got, tc.want)
			}
			if fs := r.Desired.Frontends; len(fs) != 1 || fs[0].Addr != l4.New(netip.MustParseAddr("10.96.1.5"), 80, l4.TCP) {
				t.Errorf("frontends %v: want the own ClusterIP and no other", fs)
			}
			switch text := fmt.Sprint(r.Problems); {
			case tc.problem == "" && len(r.Problems) > 0, !strings.Contains(text, tc.problem):
				t.Errorf("problems %s, want %q", text, tc.problem)
			}
		})
	}
}

// A Service that is both exported and global answers at both addresses, each by its own rules.
func TestGlobalAndExported(t *testing.T) {
	s := globalset()
	derived := netip.MustParseAddr("10.96.9.9")
	edit(&s, "a", "", func(c *clustermesh.Content) {
		c.Allocations = []clustermesh.Allocation{{Service: serve, IP: derived}}
	})
	edit(&s, "c", "", func(c *clustermesh.Content) {
		c.Exports = []clustermesh.Export{{Service: serve, Type: clustermesh.ClusterSetIP, Ports: []clustermesh.ServicePort{http}}}
	})
	editGlobal(&s, "a", func(g *clustermesh.Global) { g.AffinitySeconds = 7 })
	r := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{})
	if len(r.Desired.Frontends) != 2 || len(r.Globals) != 1 || len(r.Imports) != 1 {
		t.Fatalf("frontends %v, globals %d, imports %d", r.Desired.Frontends, len(r.Globals), len(r.Imports))
	}
	global, imported := r.Desired.Frontends[0], r.Desired.Frontends[1]
	if imported.Addr.IP != derived || len(imported.Backends) != 2 || imported.Backends[0].IP.String() != "10.3.1.10" || imported.AffinitySeconds != 0 {
		t.Errorf("import %+v: want the pods of c, the only exporter", imported)
	}
	if len(global.Backends) != 4 || global.AffinitySeconds != 7 || global.Service != "default/serve" {
		t.Errorf("global %+v: want the pods of a and b", global)
	}
	if got := r.Globals[0].Sharers; !slices.Equal(got, []clustermesh.ClusterName{"b"}) {
		t.Errorf("sharers %v", got)
	}
	if !slices.Equal(r.Allocations, []clustermesh.Allocation{{Service: serve, IP: derived}}) {
		t.Errorf("allocations %v: want those of the source as they are", r.Allocations)
	}
	for _, x := range r.Desired.Routes {
		if x.Unreachable {
			t.Errorf("route %v: the cluster's service range is not strait's", x)
		}
	}
}

// An address of two services goes to one of them, and is reported.
func TestOneAddressOfTwoServices(t *testing.T) {
	s := globalset()
	edit(&s, "a", "", func(c *clustermesh.Content) {
		other := c.Globals[0]
		other.Service.Name = "thief"
		c.Globals = append(slices.Clone(c.Globals), other)
	})
	r := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{})
	if len(r.Desired.Frontends) != 1 || r.Desired.Frontends[0].Service != "default/serve" {
		t.Errorf("frontends %v", r.Desired.Frontends)
	}
	if !strings.Contains(fmt.Sprint(r.Problems), "Service default/thief: 10.96.1.5:80/TCP is already the address of default/serve") {
		t.Errorf("problems %v", r.Problems)
	}
}

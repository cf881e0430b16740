package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/plan/mesh"
	"strait.io/strait/internal/key"
)

// gateways is a topology in which the first node of each cluster forwards all packets between its cluster
// and others.
type gateways struct{ topology.FullMesh }

func gatewayOf(c clustermesh.ClusterName, members []clustermesh.Origin) (out clustermesh.Origin) {
	for _, o := range members {
		if o.Cluster == c && (out.Node == "" || o.Compare(out) < 0) {
			out = o
		}
	}
	return out
}

func (gateways) NextHop(self clustermesh.Origin, members []clustermesh.Origin) func(to clustermesh.Origin) clustermesh.Origin {
	members = append(slices.Clone(members), self)
	own := gatewayOf(self.Cluster, members)
	return func(to clustermesh.Origin) clustermesh.Origin {
		switch {
		case to.Cluster == self.Cluster:
			return to
		case self == own:
			return gatewayOf(to.Cluster, members)
		}
		return own
	}
}

func (gateways) Roles(o clustermesh.Origin, members []clustermesh.Origin) topology.Roles {
	return topology.Roles{Relay: true, Gateway: gatewayOf(o.Cluster, append(slices.Clone(members), o)) == o}
}

// tunnelsOf returns peers with their allowed IPs, and where the routes into the tunnel lead.
func tunnelsOf(r plan.Result) (peers, routes string) {
	var ps, rs []string
	for _, p := range r.Desired.Peers {
		ps = append(ps, fmt.Sprint(p.Name, p.AllowedIPs))
	}
	for _, d := range r.Desired.Routes {
		if !d.Unreachable {
			rs = append(rs, d.Dst.String())
		}
	}
	return strings.Join(ps, " "), strings.Join(rs, " ")
}

// TestAnotherTopology: peers, allowed IPs and routes follow from the topology alone, and so does which
// tunnel's fault concerns an endpoint.
func TestAnotherTopology(t *testing.T) {
	for _, tc := range []struct {
		what, node    string
		topology      topology.Topology
		change        func(*clustermesh.State)
		peers, routes string
	}{
		{"the full mesh", "n2", nil, nil, "b/n1[10.2.1.0/24] b/n2[10.2.2.0/24] c/n1[10.3.1.0/24] c/n2[10.3.2.0/24]", "10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
		{"a gateway", "n1", gateways{}, nil, "a/n2[10.1.2.0/24] b/n1[10.2.1.0/24 10.2.2.0/24] c/n1[10.3.1.0/24 10.3.2.0/24]", "10.1.2.0/24 10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
		{"behind a gateway", "n2", gateways{}, nil, "a/n1[10.1.1.0/24 10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24]", "10.1.1.0/24 10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
		{"b's first node can have no tunnel", "n1", gateways{}, withoutKey, "a/n2[10.1.2.0/24] b/n2[10.2.2.0/24] c/n1[10.3.1.0/24 10.3.2.0/24]", "10.1.2.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
		{"b's first node is dead", "n1", gateways{}, withDead, "a/n2[10.1.2.0/24] b/n2[10.2.1.0/24 10.2.2.0/24] c/n1[10.3.1.0/24 10.3.2.0/24]", "10.1.2.0/24 10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
	} {
		s := clusterset()
		if tc.change != nil {
			tc.change(&s)
		}
		self := plan.Self{Cluster: "a", Node: clustermesh.NodeName(tc.node)}
		peers, routes := tunnelsOf(once(s, self, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Topology: tc.topology}))
		if peers != tc.peers {
			t.Errorf("%s: peers %s\nwant %s", tc.what, peers, tc.peers)
		}
		if routes != tc.routes {
			t.Errorf("%s: routes %s\nwant %s", tc.what, routes, tc.routes)
		}
	}
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Topology: gateways{}})
	p.Faults = map[clustermesh.Origin]plan.Fault{{Cluster: "b", Node: "n1"}: {Why: "carries nothing"}}
	for _, v := range p.plan(clusterset()).Imports[0].Frontends()[0].Choice.Verdicts {
		if got := strings.Contains(v.Reason, "carries nothing"); got != (v.Cluster == "b") {
			t.Errorf("the tunnel to b/n1 carries nothing, and the reason for %s is %q", v.Addr, v.Reason)
		}
	}
}

// TestTunnelsOfOthers: what a node's mesh has of the tunnels of another node is what the plan of that one has as
// its peers, in any topology.
func TestTunnelsOfOthers(t *testing.T) {
	for _, topology := range []topology.Topology{nil, gateways{}} {
		for _, change := range []func(*clustermesh.State){func(*clustermesh.State) {}, withoutKey, withDead} {
			s := clusterset()
			change(&s)
			config := plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Topology: topology}
			sees := once(s, plan.Self{Cluster: "c", Node: "n2"}, config).Mesh
			for r := range s.Nodes() {
				if r.Content.Node.PublicKey.IsZero() {
					if got := sees.Tunnels(r.Origin); got != nil {
						t.Errorf("%T: %s cannot be a peer and has tunnels: %v", topology, r.Origin, got)
					}
					continue
				}
				want, _ := tunnelsOf(once(s, plan.Self{Cluster: r.Origin.Cluster, Node: r.Origin.Node}, config))
				if got := tunnelsIn(sees, r.Origin); got != want {
					t.Errorf("%T: c/n2 sees the tunnels of %s:\n%s\nwant\n%s", topology, r.Origin, got, want)
				}
			}
		}
	}
}

// tunnelsIn returns the peers of a node as tunnelsOf does, from a mesh.
func tunnelsIn(m *mesh.Mesh, of clustermesh.Origin) string {
	var all []string
	for _, to := range m.Tunnels(of) {
		var allowed []netip.Prefix
		for _, o := range to.Reached {
			e, _ := m.End(o)
			allowed = append(allowed, e.AllowedIPs...)
		}
		all = append(all, fmt.Sprint(to.To.String(), allowed))
	}
	return strings.Join(all, " ")
}

// withoutKey takes the key of b's first node, and withDead has enough nodes claim that it is silent.
func withoutKey(s *clustermesh.State) {
	edit(s, "b", "n1", func(c *clustermesh.Content) { c.Node.PublicKey = key.Public{} })
}

func withDead(s *clustermesh.State) {
	first := clustermesh.Origin{Cluster: "b", Node: "n1"}
	for _, o := range [][2]string{{"b", "n2"}, {"c", "n1"}, {"c", "n2"}, {"a", "n1"}, {"a", "n2"}} {
		edit(s, o[0], o[1], func(c *clustermesh.Content) { c.Silent = []clustermesh.Silence{{Origin: first, Epoch: 1}} })
	}
	s.Contacts = s.Contacts.With(first, clustermesh.Silent)
}

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
	node := func(cluster, name string) clustermesh.Origin {
		return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(name)}
	}
	keyless := func(s *clustermesh.State) {
		edit(s, "b", "n1", func(c *clustermesh.Content) { c.Node.PublicKey = key.Public{} })
	}
	dead := func(s *clustermesh.State) { // its cluster's other node and a remote one claim that
		for _, o := range [][2]string{{"b", "n2"}, {"c", "n1"}, {"c", "n2"}, {"a", "n1"}, {"a", "n2"}} {
			edit(s, o[0], o[1], func(c *clustermesh.Content) {
				c.Silent = []clustermesh.Silence{{Origin: node("b", "n1"), Epoch: 1}}
			})
		}
		s.Contacts = s.Contacts.With(node("b", "n1"), clustermesh.Silent)
	}
	for _, tc := range []struct {
		what, node    string
		topology      topology.Topology
		change        func(*clustermesh.State)
		peers, routes string
	}{
		{"the full mesh", "n2", nil, nil, "b/n1[10.2.1.0/24] b/n2[10.2.2.0/24] c/n1[10.3.1.0/24] c/n2[10.3.2.0/24]", "10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
		{"a gateway", "n1", gateways{}, nil, "a/n2[10.1.2.0/24] b/n1[10.2.1.0/24 10.2.2.0/24] c/n1[10.3.1.0/24 10.3.2.0/24]", "10.1.2.0/24 10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
		{"behind a gateway", "n2", gateways{}, nil, "a/n1[10.1.1.0/24 10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24]", "10.1.1.0/24 10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
		{"b's first node can have no tunnel", "n1", gateways{}, keyless, "a/n2[10.1.2.0/24] b/n2[10.2.2.0/24] c/n1[10.3.1.0/24 10.3.2.0/24]", "10.1.2.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
		{"b's first node is dead", "n1", gateways{}, dead, "a/n2[10.1.2.0/24] b/n2[10.2.1.0/24 10.2.2.0/24] c/n1[10.3.1.0/24 10.3.2.0/24]", "10.1.2.0/24 10.2.1.0/24 10.2.2.0/24 10.3.1.0/24 10.3.2.0/24"},
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
	p.Faults = map[clustermesh.Origin]plan.Fault{node("b", "n1"): {Why: "carries nothing"}}
	for _, v := range p.plan(clusterset()).Imports[0].Frontends()[0].Choice.Verdicts {
		if got := strings.Contains(v.Reason, "carries nothing"); got != (v.Cluster == "b") {
			t.Errorf("the tunnel to b/n1 carries nothing, and the reason for %s is %q", v.Addr, v.Reason)
		}
	}
}

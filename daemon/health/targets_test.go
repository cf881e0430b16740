package health

import (
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/plan/mesh"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/tunnelhealth"
	"strait.io/strait/internal/key"
)

// TestTargets: peers with an address of this node's family inside the tunnel are probed; of two with the same
// address, the one that packets go to.
func TestTargets(t *testing.T) {
	prefix := netip.MustParsePrefix
	peer := func(k byte, inside string, ips ...string) datapath.Peer {
		p := datapath.Peer{Key: key.Public{k}, Inside: netip.AddrPortFrom(netip.MustParseAddr(inside), 1)}
		for _, ip := range ips {
			p.AllowedIPs = append(p.AllowedIPs, prefix(ip))
		}
		return p
	}
	origin := func(n string) clustermesh.Origin {
		return clustermesh.Origin{Cluster: "b", Node: clustermesh.NodeName(n)}
	}
	guest := peer(9, "10.9.0.1", "10.9.0.1/32")
	guest.Guest = true
	r := plan.Result{Mesh: &mesh.Mesh{}}
	r.Desired.Sources.Node = netip.MustParseAddr("10.1.0.1")
	r.Desired.Peers = []datapath.Peer{
		peer(1, "10.2.0.1", "10.2.0.0/24"), peer(2, "10.3.0.1", "10.3.0.0/16"), peer(3, "10.3.0.1", "10.3.0.0/24", "10.3.0.0/16"),
		peer(4, "fd00::1", "fd00::/64"), peer(5, "10.5.0.1", "10.6.0.0/24"), guest,
	}
	for k, n := range map[byte]string{1: "n1", 2: "n2", 3: "n3", 4: "n4", 5: "n5"} {
		r.Mesh.Ends = append(r.Mesh.Ends, mesh.End{Origin: origin(n), Key: key.Public{k}})
	}
	s := clustermesh.State{
		Records:  clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{origin("n1"): {Content: clustermesh.Content{Endpoints: make([]clustermesh.Endpoint, 1)}}}),
		Contacts: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Contact{origin("n1"): clustermesh.Alive, origin("n3"): clustermesh.Silent}),
	}
	got := Targets(r, s, func(p netip.Prefix) int { return p.Bits() })
	want := map[netip.Addr]Target{
		netip.MustParseAddr("10.2.0.1"): {origin("n1"), key.Public{1}, tunnelhealth.Peer{Traffic: true, Size: 24}},
		netip.MustParseAddr("10.3.0.1"): {origin("n3"), key.Public{3}, tunnelhealth.Peer{Gone: true, Size: 24}},
	}
	for a, w := range want {
		if got[a] != w {
			t.Errorf("%s: %+v, want %+v", a, got[a], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("targets %v", got)
	}
}

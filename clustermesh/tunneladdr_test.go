package clustermesh_test

import (
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh"
)

func TestTunnelAddr(t *testing.T) {
	seen := map[netip.Addr]clustermesh.Origin{}
	for _, o := range []clustermesh.Origin{{Cluster: "a", Node: "n1"}, {Cluster: "a", Node: "n2"}, {Cluster: "b", Node: "n1"}} {
		for _, is6 := range []bool{false, true} {
			a := clustermesh.TunnelAddr(o, is6)
			if a.Is6() != is6 || !clustermesh.IsTunnelAddr(a) {
				t.Errorf("%v: %s", o, a)
			}
			if other, taken := seen[a]; taken {
				t.Errorf("%v and %v have the same address %s", o, other, a)
			}
			seen[a] = o
		}
	}
	// Nodes of different versions must always agree: the address is in the allowed IPs of all.
	if a := clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "a", Node: "n1"}, false); a != netip.MustParseAddr("243.206.206.96") {
		t.Errorf("the address of a/n1 became %s", a)
	}
	for _, s := range []string{"10.1.1.1", "241.1.2.3", "242.1.2.3", "fd00::1"} {
		if clustermesh.IsTunnelAddr(netip.MustParseAddr(s)) {
			t.Errorf("%s is no address of the tunnel's", s)
		}
	}
}

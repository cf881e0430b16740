package cluster_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
	"strait.io/strait/internal/problem"
)

func TestPairs(t *testing.T) {
	node := func(cluster, contact string, handshake int64) api.Node {
		n := api.Node{Cluster: cluster, Contact: contact}
		if handshake >= 0 {
			n.Tunnel = &api.Tunnel{Underlay: netip.MustParseAddrPort("10.9.9.9:51820")}
		}
		if handshake > 0 {
			n.Tunnel.Handshake = time.Unix(handshake, 0)
		}
		return n
	}
	for _, tc := range []struct {
		name    string
		answers []cluster.Answer
		ok      bool
		message string
	}{
		{"no answers", nil, false, "no daemon of a answers"},
		{"never heard", []cluster.Answer{{Cluster: "a", Nodes: []api.Node{node("a", "self", -1)}}}, false, "7946"},
		{"held", []cluster.Answer{{Cluster: "a", Nodes: []api.Node{node("b", "held", 0)}}}, false, "does not hear it now"},
		{"no tunnel", []cluster.Answer{{Cluster: "a", Nodes: []api.Node{node("b", "alive", -1)}}}, false, "has no tunnel"},
		{"no handshake", []cluster.Answer{{Cluster: "a", Nodes: []api.Node{node("b", "alive", 0)}}}, false, "10.9.9.9:51820"},
		{"no handshake, and a reason", []cluster.Answer{{Cluster: "a", Nodes: []api.Node{node("b", "alive", 0)},
			Problems: []problem.Problem{problem.Cluster("b").Problem(problem.Problem{Message: "has two UIDs"})}}}, false, "cluster b: has two UIDs"},
		{"one daemon has it", []cluster.Answer{{Cluster: "a", Nodes: []api.Node{node("b", "alive", 0)}}, {Cluster: "a", Nodes: []api.Node{node("b", "alive", 7)}}}, true, ""},
		{"mesh off, heard", []cluster.Answer{{Cluster: "a", MeshOff: true, Nodes: []api.Node{node("b", "alive", -1)}}}, true, ""},
		{"mesh off, silent", []cluster.Answer{{Cluster: "a", MeshOff: true, Nodes: []api.Node{node("b", "silent", -1)}}}, false, "7946"},
		{"the other side's handshake is not ours", []cluster.Answer{{Cluster: "b", Nodes: []api.Node{node("a", "alive", 7)}}}, false, "no daemon of a"},
	} {
		pairs := cluster.Pairs([]string{"a", "b"}, tc.answers)
		if len(pairs) != 2 || pairs[0].From != "a" || pairs[0].To != "b" {
			t.Fatalf("%s: %+v", tc.name, pairs)
		}
		if p := pairs[0]; p.OK != tc.ok || !strings.Contains(p.Why, tc.message) {
			t.Errorf("%s: %+v, want %v %q", tc.name, p, tc.ok, tc.message)
		}
	}
}

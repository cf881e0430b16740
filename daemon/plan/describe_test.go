package plan_test

import (
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// TestEnds: every node is described as a peer, with the same address and prefixes that the tunnel to it
// has, or with the reason why there is none.
func TestEnds(t *testing.T) {
	s := clusterset()
	edit(&s, "b", "n1", func(c *clustermesh.Content) { c.Node.PublicKey = key.Public{} })
	edit(&s, "b", "n2", func(c *clustermesh.Content) { c.Node.Addresses = nil })
	edit(&s, "c", "n1", func(c *clustermesh.Content) { c.Node.Prefixes = nil })
	self := plan.Self{Cluster: "a", Node: "n1"}
	r := once(s, self, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	peers := map[string]datapath.Peer{}
	for _, p := range r.Desired.Peers {
		peers[p.Name] = p
	}
	want := map[string]string{"a/n1": "", "a/n2": "", "b/n1": "mesh is off on it", "b/n2": "no address", "c/n1": "no prefix", "c/n2": ""}
	if len(r.Mesh.Ends) != len(want) {
		t.Fatalf("%d ends, want %d: %+v", len(r.Mesh.Ends), len(want), r.Mesh.Ends)
	}
	for _, e := range r.Mesh.Ends {
		name := e.Origin.String()
		why, known := want[name]
		if !known || (e.Why == "") != (why == "") || !strings.Contains(e.Why, why) {
			t.Errorf("%s: %q, want %q", name, e.Why, why)
		}
		if p, is := peers[name]; is && (p.Underlay != e.Underlay || !p.Equal(datapath.Peer{Key: e.Key, Underlay: e.Underlay, AllowedIPs: e.AllowedIPs})) {
			t.Errorf("%s is described as %+v, and the peer is %+v", name, e, p)
		}
		if e.Why == "" && (!e.Underlay.IsValid() || len(e.AllowedIPs) == 0) {
			t.Errorf("%s can be a peer, and is %+v", name, e)
		}
	}
	off := plan.Config{CIDRs: []netip.Prefix{cidr}}
	for _, e := range once(s, self, off).Mesh.Ends {
		if !strings.Contains(e.Why, "mesh is off on the node that was asked") {
			t.Errorf("without a mesh, %s says %q", e.Origin, e.Why)
		}
	}
}

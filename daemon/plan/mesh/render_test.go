package mesh_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan/mesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func end(cluster, node string, k byte, why string, allowed ...string) mesh.End {
	e := mesh.End{
		Origin: clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}, Key: key.Public{k},
		Underlay: netip.MustParseAddrPort("172.31.0.1:51820"), AllowedIPs: prefixes(allowed...), Why: why,
	}
	if cluster != "a" && why == "" {
		e.Via = e.Origin
	}
	return e
}

func guest(name string, elsewhere bool, why string, ranges ...string) mesh.Admitted {
	return mesh.Admitted{Guest: mesh.Guest{Name: name, Key: key.Public{99, name[0]}, Range: prefixes(ranges...)}, Elsewhere: elsewhere, Why: why}
}

// TestRenderings: peers, sources and routes follow from a Mesh alone.
func TestRenderings(t *testing.T) {
	self := clustermesh.Origin{Cluster: "a", Node: "n1"}
	own := datapath.Sources{Node: netip.MustParseAddr("10.1.0.1"), Prefixes: prefixes("10.1.0.0/24")}
	for _, tc := range []struct {
		name                  string
		mesh                  mesh.Mesh
		peers, routes, guests string
	}{
		{"an empty one", mesh.Mesh{}, "", "", ""},
		{
			"nodes of other clusters",
			mesh.Mesh{Self: self, Own: own, Ends: []mesh.End{end("a", "n1", 1, "", "10.1.0.0/24"), end("a", "n2", 2, "", "10.1.1.0/24"), end("b", "n1", 3, "", "10.2.0.0/24", "fd00::/64")}},
			"b/n1", "10.2.0.0/24 src 10.1.0.1, fd00::/64", "",
		},
		{
			"one that no tunnel leads to",
			mesh.Mesh{Self: self, Ends: []mesh.End{end("b", "n1", 3, "it has no prefix of pods"), end("b", "n2", 4, "", "10.2.1.0/24")}},
			"b/n2", "10.2.1.0/24", "",
		},
		{
			"this node's own key",
			mesh.Mesh{Self: self, Key: key.Public{3}, Ends: []mesh.End{end("b", "n1", 3, "", "10.2.0.0/24")}},
			"", "", "",
		},
		{
			"guests",
			mesh.Mesh{Self: self, Own: own, Guests: []mesh.Admitted{guest("laptop", false, "", "10.99.0.3/32", "10.99.0.2/32", "10.99.0.2/32"), guest("other", true, "", "10.99.0.4/32"), guest("refused", false, "its key is that of node b/n1", "10.99.0.5/32")}},
			"peer/laptop", "10.99.0.2/32 src 10.1.0.1, 10.99.0.3/32 src 10.1.0.1", "laptop [10.99.0.2/32 10.99.0.3/32]",
		},
		{
			"ranges that no tunnel leads to",
			mesh.Mesh{Self: self, ClusterSetIPs: prefixes("241.0.0.0/8"), TunnelOnly: prefixes("10.2.0.0/16", "10.2.0.0/24", "10.3.0.0/16", "10.3.0.0/16"), Ends: []mesh.End{end("b", "n1", 3, "", "10.2.0.0/24")}},
			"b/n1", "10.2.0.0/16 unreachable, 10.2.0.0/24, 10.3.0.0/16 unreachable, 241.0.0.0/8 unreachable", "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var peers, routes, guests []string
			for _, p := range tc.mesh.Peers() {
				peers = append(peers, p.Name)
			}
			for _, r := range tc.mesh.Routes() {
				text := r.Dst.String()
				if r.Src.IsValid() {
					text += " src " + r.Src.String()
				}
				if r.Unreachable {
					text += " unreachable"
				}
				routes = append(routes, text)
			}
			sources := tc.mesh.Sources()
			for _, g := range sources.Guests {
				guests = append(guests, fmt.Sprint(g.Name, " ", g.Range))
			}
			for _, x := range []struct{ what, got, want string }{
				{"peers", strings.Join(peers, ", "), tc.peers}, {"routes", strings.Join(routes, ", "), tc.routes}, {"guests", strings.Join(guests, ", "), tc.guests},
			} {
				if x.got != x.want {
					t.Errorf("%s %q, want %q", x.what, x.got, x.want)
				}
			}
			if sources.Node != tc.mesh.Own.Node || len(tc.mesh.Own.Guests) > 0 {
				t.Errorf("sources %+v of %+v", sources, tc.mesh.Own)
			}
		})
	}
}

// TestOfKeeps: the same mesh comes back while nothing that it is made from changes, and while the
// machine's addresses are unknown. The first of all is empty then.
func TestOfKeeps(t *testing.T) {
	in := mesh.Inputs{Self: clustermesh.Origin{Cluster: "a", Node: "n1"}, On: true, State: clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}}}
	in.Host.Unknown = true
	first, past := mesh.Of(in, mesh.Past{})
	if len(first.Ends)+len(first.Problems) > 0 {
		t.Errorf("on an unknown machine: %+v", first)
	}
	add := func(node string, last byte) {
		o := clustermesh.Origin{Cluster: "b", Node: clustermesh.NodeName(node)}
		in.State.Records = in.State.Records.With(o, clustermesh.Record{Origin: o, Content: clustermesh.Content{Node: &clustermesh.Node{
			Name: o.Node, PublicKey: key.Public{last}, WireGuardPort: 51820,
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 31, 0, last})}, Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 2, last, 0}), 24)},
		}}})
	}
	add("n1", 1)
	in.Host.Unknown = false
	m, past := mesh.Of(in, past)
	if e, is := m.End(clustermesh.Origin{Cluster: "b", Node: "n1"}); !is || e.Why != "" {
		t.Fatalf("the end of b/n1 is %+v (there: %t)", e, is)
	}
	add("n1", 1) // the same again, in other memory
	if again, _ := mesh.Of(in, past); again != m {
		t.Error("nothing changed, but the mesh was made again")
	}
	add("n2", 2)
	if next, _ := mesh.Of(in, past); next == m || len(next.Peers()) != 2 || len(m.Peers()) != 1 {
		t.Errorf("a node came: the peers are %+v", next.Peers())
	}
	in.Host.Unknown = true
	stays, past := mesh.Of(in, past)
	if stays != m {
		t.Error("on an unknown machine, the mesh did not stay")
	}
	in.Host.Unknown = false
	if next, _ := mesh.Of(in, past); len(next.Peers()) != 2 {
		t.Errorf("a node came while the machine was unknown: the peers are %+v", next.Peers())
	}
	if _, is := m.End(clustermesh.Origin{Cluster: "b", Node: "n3"}); is {
		t.Error("there is an end of a node that does not exist")
	}
}

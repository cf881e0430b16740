package mesh

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// TestOfForgetsNothing: whatever was there before, a mesh is the same as one without a past. The
// prefixes are each node's own, and no node that shares an address had it before: who keeps what is
// claimed twice depends on the past.
func TestOfForgetsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Inputs{Self: clustermesh.Origin{Cluster: "a", Node: "n1"}, On: true}
		var past Past
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			n := byte(rapid.IntRange(1, 4).Draw(t, "node"))
			o := clustermesh.Origin{Cluster: rapid.SampledFrom([]clustermesh.ClusterName{"a", "b", "c"}).Draw(t, "cluster"), Node: clustermesh.NodeName(fmt.Sprint("n", n))}
			r := clustermesh.Record{Origin: o}
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				in.State.Records = in.State.Records.Without(o)
			case 1:
				in.State.Records = in.State.Records.With(o, r)
			case 2:
				in.Dead = map[clustermesh.Origin]bool{o: true}
			case 3:
				in.Dead = nil
			case 4:
				in.State.Proven = in.State.Proven.With(o, netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 31, o.Cluster[0], n}), uint16(step+1)))
			default:
				r.KeyProven = rapid.Bool().Draw(t, "proven")
				r.Content.Node = &clustermesh.Node{
					Name: o.Node, PublicKey: key.Public{o.Cluster[0], n}, WireGuardPort: uint16(rapid.IntRange(1, 2).Draw(t, "port")),
					Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 31, o.Cluster[0], n})},
					Prefixes:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, o.Cluster[0], n, 0}), 24)},
				}
				in.State.Records = in.State.Records.With(o, r)
			}
			var m *Mesh
			m, past = Of(in, past)
			if now := in.nodes(); !reflect.DeepEqual(past.nodes, now) {
				t.Fatalf("step %d: the nodes are noted as %+v, and are %+v", step, past.nodes, now)
			}
			fresh, _ := Of(in, Past{})
			if got, want := fmt.Sprintf("%+v", m), fmt.Sprintf("%+v", fresh); got != want {
				t.Fatalf("step %d:\n%s\nwant\n%s", step, got, want)
			}
		}
	})
}

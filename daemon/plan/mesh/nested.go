package mesh

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
)

// nested warns of prefixes in force that lie inside another node's of the same cluster: the longer one gets
// the packets, which is right only if that node has pods there. Claims are sorted by prefix. It names both,
// once for each node.
func nested(claims []claim, verdicts []verdict) (out []clustermesh.Problem) {
	var around []claim // whose prefixes contain the one at hand
	inside := map[clustermesh.Origin][]netip.Prefix{}
	in := map[clustermesh.Origin]claim{} // the first of them, by who is inside
	for i, c := range claims {
		if !verdicts[i].won() || c.contested {
			continue
		}
		for len(around) > 0 && !around[len(around)-1].prefix.Overlaps(c.prefix) {
			around = around[:len(around)-1]
		}
		for _, of := range slices.Backward(around) {
			if of.node == c.node || of.node.Cluster != c.node.Cluster {
				continue
			}
			if inside[c.node] = append(inside[c.node], c.prefix); len(inside[c.node]) == 1 {
				in[c.node] = of
			}
			break
		}
		around = append(around, c)
	}
	for o, ps := range inside {
		more := ""
		if n := len(ps) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more of its prefixes lie inside others')", n)
		}
		out = append(out, contested(o, "prefixes", fmt.Sprintf("%s lies inside %s of node %s, and gets the packets to addresses there%s", ps[0], in[o].prefix, in[o].node, more),
			"that is right if the network gave pods of the one addresses of the other; else correct the annotation strait.io/prefixes of the node"))
	}
	return out
}

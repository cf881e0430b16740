package daemon

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
)

// writtenPrefixes are those that somebody wrote down for this node: in its config, else in the annotation of its Node object.
func writtenPrefixes(c Config, local clustermesh.Local) []netip.Prefix {
	if len(c.NodePrefixes) > 0 {
		return prefixes(c.NodePrefixes)
	}
	return local.NodePrefixes[clustermesh.NodeName(c.Node)]
}

// nodePrefixes are the prefixes that a node answers for: those written down; else those of its Node object, if all
// its pods lie inside; else its pods' own addresses. The node's own addresses are no pods': what answers there
// uses the host's network.
func nodePrefixes(written, object []netip.Prefix, node, pods []netip.Addr) []netip.Prefix {
	if len(written) > 0 {
		return written
	}
	inside := func(a netip.Addr) bool {
		return slices.ContainsFunc(object, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	var own []netip.Prefix
	outside := false
	for _, a := range pods {
		if a.IsValid() && !slices.Contains(node, a) {
			own = append(own, netip.PrefixFrom(a, a.BitLen()))
			outside = outside || !inside(a)
		}
	}
	if !outside {
		return object
	}
	slices.SortFunc(own, netip.Prefix.Compare)
	return slices.Compact(own)
}

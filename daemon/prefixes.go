package daemon

import (
	"net/netip"
	"slices"
)

// nodePrefixes are the prefixes that a node answers for: as configured; else those of its Node object, if all
// its pods lie inside; else its pods' own addresses. The node's own addresses are no pods': what answers there
// uses the host's network.
func nodePrefixes(configured, object []netip.Prefix, node, pods []netip.Addr) []netip.Prefix {
	if len(configured) > 0 {
		return configured
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

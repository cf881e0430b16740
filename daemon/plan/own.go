package plan

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
)

// owned remembers the addresses of the last plan. While nothing changes it returns the same lists.
type owned struct {
	given []clustermesh.Allocation
	own   datapath.Own
}

// update returns the addresses of which every port is strait's: the ranges for ClusterSetIPs, or, if
// the cluster allocates them itself, the ClusterIPs of derived Services for as long as these exist.
// The ClusterIP of a global service is not among them: its other ports are kube-proxy's.
func (o *owned) update(cidrs []netip.Prefix, given []clustermesh.Allocation) datapath.Own {
	if len(cidrs) > 0 {
		if o.own.Prefixes == nil {
			for _, c := range cidrs {
				o.own.Prefixes = append(o.own.Prefixes, c.Masked())
			}
			slices.SortFunc(o.own.Prefixes, netip.Prefix.Compare)
		}
		return o.own
	}
	if slices.Equal(o.given, given) {
		return o.own
	}
	o.given = given
	addrs := make([]netip.Addr, 0, len(given))
	for _, a := range given {
		addrs = append(addrs, a.IP)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	o.own = datapath.Own{Addrs: slices.Compact(addrs)}
	return o.own
}

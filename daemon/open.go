package daemon

import (
	"net/netip"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath/sockdestroy"
)

// countOpen counts for each drained cluster the sockets of this node that are still connected to it.
// Without a drained cluster it does not read the sockets, of which there can be many.
func (v viewer) countOpen(clusters []api.Cluster, sockets func() ([]sockdestroy.Record, error)) error {
	drained := map[clustermesh.ClusterName]*int{}
	for i := range clusters {
		if clusters[i].Drained > 0 {
			drained[clustermesh.ClusterName(clusters[i].Name)] = new(int)
		}
	}
	if len(drained) == 0 {
		return nil
	}
	records, err := sockets()
	if err != nil {
		return err
	}
	of := v.places()
	seen := make(map[uint64]bool, len(records)) // a record that moves can be listed twice
	for _, r := range records {
		o, _ := of(r.Backend.Addr().Unmap())
		if n := drained[o.Cluster]; r.Connected && n != nil && !seen[r.Cookie] {
			seen[r.Cookie] = true
			*n++
		}
	}
	for i := range clusters {
		clusters[i].Open = drained[clustermesh.ClusterName(clusters[i].Name)]
	}
	return nil
}

// places returns a function that finds the node that has an address. A pod that is gone is found by the
// range of its node.
func (v viewer) places() func(netip.Addr) (clustermesh.Origin, bool) {
	pods, ranges := map[netip.Addr]clustermesh.Origin{}, map[netip.Prefix]clustermesh.Origin{}
	for o, r := range v.state.Records.All() {
		for i := range r.Content.Endpoints {
			pods[r.Content.Endpoints[i].Addr.Unmap()] = o
		}
		if r.Content.Node == nil {
			continue
		}
		for _, p := range r.Content.Node.Prefixes {
			ranges[p] = o
		}
	}
	return func(a netip.Addr) (clustermesh.Origin, bool) {
		if o, is := pods[a]; is {
			return o, true
		}
		var of clustermesh.Origin
		bits := -1
		for p, o := range ranges {
			if p.Contains(a) && p.Bits() > bits {
				of, bits = o, p.Bits()
			}
		}
		return of, bits >= 0
	}
}

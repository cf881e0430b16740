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
	of := v.clusterOf(drained)
	seen := make(map[uint64]bool, len(records)) // a record that moves can be listed twice
	for _, r := range records {
		if n := of(r.Backend.Addr().Unmap()); r.Connected && n != nil && !seen[r.Cookie] {
			seen[r.Cookie] = true
			*n++
		}
	}
	for i := range clusters {
		clusters[i].Open = drained[clustermesh.ClusterName(clusters[i].Name)]
	}
	return nil
}

// clusterOf returns a function that finds the counter of the cluster that has an address; nil if no cluster
// has it. A pod that is gone is found by the range of its node.
func (v viewer) clusterOf(counters map[clustermesh.ClusterName]*int) func(netip.Addr) *int {
	pods, ranges := map[netip.Addr]*int{}, map[netip.Prefix]*int{}
	for o, r := range v.state.Records.All() {
		n := counters[o.Cluster]
		if n == nil {
			continue
		}
		for i := range r.Content.Endpoints {
			pods[r.Content.Endpoints[i].Addr.Unmap()] = n
		}
		if r.Content.Node == nil {
			continue
		}
		for _, p := range r.Content.Node.Prefixes {
			ranges[p] = n
		}
	}
	return func(a netip.Addr) *int {
		if n := pods[a]; n != nil {
			return n
		}
		for p, n := range ranges {
			if p.Contains(a) {
				return n
			}
		}
		return nil
	}
}

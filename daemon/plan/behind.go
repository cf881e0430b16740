package plan

import (
	"iter"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// Addrs yields the frontends of the service, each with its port. Ports of a protocol without socket
// load balancing have none.
func (d *demand) Addrs() iter.Seq2[l4.Addr, clustermesh.ServicePort] {
	return func(yield func(l4.Addr, clustermesh.ServicePort) bool) {
		for _, port := range d.ports {
			if !port.Proto.Balanced() {
				continue
			}
			for _, ip := range d.ips {
				if !yield(l4.New(ip, port.Port, port.Proto), port) {
					return
				}
			}
		}
	}
}

// Behind yields the endpoints that were considered for a port, used or not, with their clusters. An
// address that two records list is yielded twice. Behind does not rank the endpoints and allocates
// nothing; Frontends says why each is used or not.
func (d *demand) Behind(port clustermesh.ServicePort) iter.Seq2[clustermesh.ClusterName, netip.AddrPort] {
	return func(yield func(clustermesh.ClusterName, netip.AddrPort) bool) {
		for _, r := range d.rows {
			cluster := r.from.origin.Cluster
			if ports, offers := d.offered(cluster); !offers || !slices.ContainsFunc(ports, port.Is) {
				continue
			}
			es := r.endpoints()
			for i := range es {
				for _, q := range es[i].Ports {
					if q.Name == port.Name && q.Proto == port.Proto && q.Port != 0 &&
						!yield(cluster, netip.AddrPortFrom(member{&es[i], r.from}.addr(), q.Port)) {
						return
					}
				}
			}
		}
	}
}

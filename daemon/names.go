package daemon

import (
	"log/slog"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/dns"
	"strait.io/strait/daemon/plan"
)

// table is what the DNS server answers from; nil while it is unknown, which is not the same as empty.
func (d *Daemon) table() *dns.Table {
	if m := d.now(); m != nil {
		return m.table
	}
	return nil
}

// tableOf makes the table of a plan; it is the last one if that says the same.
func (d *Daemon) tableOf(r plan.Result, namespaces []string) *dns.Table {
	if m := d.now(); m != nil && m.table != nil && slices.Equal(m.namespaces, namespaces) &&
		(m.namespaces == nil) == (namespaces == nil) && sameNames(m.result.Imports, r.Imports) {
		return m.table
	}
	return dns.NewTable(dnsServices(r, namespaces))
}

// dnsServices are the imports of a plan that have DNS names in a cluster: those of the namespaces, sorted, that exist
// there, all where that is nil.
func dnsServices(r plan.Result, namespaces []string) []dns.Service {
	services := make([]dns.Service, 0, len(r.Imports))
	for _, i := range r.Imports {
		if _, exists := slices.BinarySearch(namespaces, i.Service.Namespace); !exists && namespaces != nil {
			continue
		}
		s := dns.Service{Name: i.Service, Headless: i.Type == clustermesh.Headless, IPs: i.IPs, Ports: i.Ports}
		if s.Headless {
			s.Endpoints = dnsEndpoints(i.Endpoints())
		}
		services = append(services, s)
	}
	return services
}

func dnsEndpoints(all []clustermesh.ClusterEndpoint) (out []dns.Endpoint) {
	for _, e := range all {
		if e.Ready && !e.Terminating && !e.Dead {
			out = append(out, dns.Endpoint{Hostname: e.Hostname, Cluster: e.Cluster, IP: e.Addr, Ports: e.Ports})
		}
	}
	return out
}

// sameNames reports that two lists of imports have the same DNS names in the same namespaces: mostly only endpoints differ,
// of services whose names do not tell them.
func sameNames(a, b []*plan.Import) bool {
	return slices.EqualFunc(a, b, func(i, j *plan.Import) bool {
		return i == j || i.Import == j.Import && i.Type != clustermesh.Headless && slices.Equal(i.IPs, j.IPs)
	})
}

// given are the ranges in which addresses to listen on are made the machine's own: one address is then the same on
// every node, and no packet to it leaves one.
var given = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00::/8")}

// clouds are the ranges in given in which clouds answer a machine: for metadata, credentials, time and names.
var clouds = []netip.Prefix{
	netip.MustParsePrefix("169.254.169.0/24"), netip.MustParsePrefix("169.254.170.0/24"),
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::/32"),
}

// within finds the first of some ranges that has an address.
func within(ranges []netip.Prefix, a netip.Addr) (netip.Prefix, bool) {
	i := slices.IndexFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
	if i < 0 {
		return netip.Prefix{}, false
	}
	return ranges[i], true
}

// givenAddrs are the addresses to listen on that are made this machine's own.
func (d DNSConfig) givenAddrs() (out []netip.Addr) {
	for _, listen := range d.Listen {
		if a := listen.Addr(); !slices.Contains(out, a) {
			if _, is := within(given, a); is {
				out = append(out, a)
			}
		}
	}
	return out
}

func dnsConfig(c Config, log *slog.Logger) dns.Config {
	return dns.Config{
		Listen: c.DNS.Listen, Upstreams: c.DNS.Upstreams, Coming: c.DNS.givenAddrs(), Log: log.With("part", "dns"),
	}
}

package daemon

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/dns"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// table returns what the DNS server answers from; nil while it is unknown, which is not the same as
// empty.
func (d *Daemon) table() *dns.Table {
	if m := d.now(); m != nil {
		return m.table
	}
	return nil
}

// tableOf returns the DNS table of a plan. It reuses the last table if nothing in it changed.
func (d *Daemon) tableOf(r plan.Result, namespaces, own []string) *dns.Table {
	if m := d.now(); m != nil && m.table != nil && slices.Equal(m.namespaces, namespaces) && slices.Equal(m.own, own) &&
		(m.namespaces == nil) == (namespaces == nil) && sameNames(m.result.Imports, r.Imports) {
		return m.table
	}
	return dns.NewTable(dnsServices(r, namespaces), own...)
}

// publicNames reports the imports whose local names do not fall through although they could, once for each
// namespace.
func publicNames(c DNSConfig, r plan.Result, t *dns.Table) (out []clustermesh.Problem) {
	last := ""
	for _, i := range r.Imports {
		ns := i.Service.Namespace
		if c.FallThrough == "" || t == nil || ns == last || !t.Public(ns) {
			continue
		}
		last = ns
		out = append(out, problem.Named("namespace", ns).Problem(clustermesh.Problem{
			Code: problem.NamespacePublic, Field: "dns.fallThrough", Warning: true,
			Message: fmt.Sprintf("%s is a top-level domain of the public DNS, so names such as %s.%s.svc.%s do not fall through: they would answer for %s.%s", ns, i.Service.Name, ns, c.FallThrough, i.Service.Name, ns),
			Try:     "if local names in this namespace should, make a Namespace object of that name in this cluster; otherwise use the names in clusterset.local",
		}))
	}
	return out
}

// dnsServices returns the imports of a plan that have DNS names in a cluster: those whose
// namespaces exist there. Namespaces must be sorted; nil means all.
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
		if e.Ready && !e.Dead {
			out = append(out, dns.Endpoint{Hostname: e.Hostname, Cluster: e.Cluster, IP: e.Addr, Ports: e.Ports})
		}
	}
	return out
}

// sameNames reports whether two lists of imports have the same DNS names. Usually only endpoints
// differ, and only the DNS names of headless services depend on endpoints.
func sameNames(a, b []*plan.Import) bool {
	return slices.EqualFunc(a, b, func(i, j *plan.Import) bool {
		return i == j || i.Import == j.Import && i.Type != clustermesh.Headless && slices.Equal(i.IPs, j.IPs)
	})
}

// given are the ranges whose listen addresses are assigned to the machine. Such an address can be
// the same on every node, and no packet to it leaves a node.
var given = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00::/8")}

// clouds are the ranges inside given that cloud providers use for services to their machines:
// metadata, credentials, time and DNS.
var clouds = []netip.Prefix{
	netip.MustParsePrefix("169.254.169.0/24"), netip.MustParsePrefix("169.254.170.0/24"),
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::/32"),
}

// within returns the first of ranges that contains a.
func within(ranges []netip.Prefix, a netip.Addr) (netip.Prefix, bool) {
	i := slices.IndexFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
	if i < 0 {
		return netip.Prefix{}, false
	}
	return ranges[i], true
}

// givenAddrs returns the listen addresses that are assigned to this machine.
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
		Listen: c.DNS.Listen, Upstreams: c.DNS.Upstreams, Coming: c.DNS.givenAddrs(), FallThrough: c.DNS.FallThrough,
		Log: log.With("part", "dns"),
	}
}

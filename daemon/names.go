package daemon

import (
	"log/slog"
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

// dnsServices are the imports of a plan that have DNS names in a cluster: those of the namespaces, sorted, that exist
// there, all where that is nil.
func dnsServices(r plan.Result, namespaces []string) (services []dns.Service) {
	for _, i := range r.Imports {
		if _, exists := slices.BinarySearch(namespaces, i.Service.Namespace); !exists && namespaces != nil {
			continue
		}
		s := dns.Service{Name: i.Service, Headless: i.Type == clustermesh.Headless, IPs: i.IPs, Ports: i.Ports}
		for _, e := range i.Endpoints {
			if s.Headless && e.Ready && !e.Terminating && !e.Dead {
				s.Endpoints = append(s.Endpoints, dns.Endpoint{Hostname: e.Hostname, Cluster: e.Cluster, IP: e.Addr, Ports: e.Ports})
			}
		}
		services = append(services, s)
	}
	return services
}

func dnsConfig(c Config, log *slog.Logger) dns.Config {
	out := dns.Config{Upstreams: c.DNS.Upstreams, Zone: "clusterset.local", Log: log.With("part", "dns")}
	for _, s := range c.DNS.Listen {
		out.Listen = append(out.Listen, addrPort(s))
	}
	return out
}

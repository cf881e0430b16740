package plan

import (
	"fmt"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// sharer is another cluster that lends its endpoints of a global service.
type sharer struct {
	cluster clustermesh.ClusterName
	ports   []clustermesh.ServicePort
}

// shared gathers what other clusters share, by service, in the order of their names.
func (p *planner) shared() map[clustermesh.ServiceName][]sharer {
	out := map[clustermesh.ServiceName][]sharer{}
	if len(p.own().Globals) == 0 {
		return out
	}
	for _, c := range p.state.Clusters() {
		if c == p.self.Cluster {
			continue
		}
		for _, g := range p.state.Records[clustermesh.Origin{Cluster: c}].Content.Globals {
			if g.Shared {
				out[g.Service] = append(out[g.Service], sharer{c, g.Ports})
			}
		}
	}
	return out
}

// global makes frontends of the own Service's addresses. Behind them are the own cluster's endpoints, always, and
// those of every other cluster whose Service of that name is global and shared; whether this cluster shares its own
// makes no difference to it.
func (p *planner) global(g clustermesh.Global, sharers []sharer) (Global, []clustermesh.Problem) {
	d := demand{
		object: "Service " + g.Service.String(), ips: g.IPs, ports: g.Ports,
		prefer: locality.Preference{
			LocalOnly:    g.InternalTrafficPolicy == clustermesh.PolicyLocal,
			Distribution: g.TrafficDistribution,
			Affinity:     g.Affinity,
		},
		offers: map[clustermesh.ClusterName][]clustermesh.ServicePort{p.self.Cluster: g.Ports},
	}
	out := Global{Global: g}
	var problems []clustermesh.Problem
	for _, s := range sharers {
		d.offers[s.cluster] = s.ports
		out.Sharers = append(out.Sharers, s.cluster)
		problems = append(problems, missingPorts(d, s)...)
	}
	d.endpoints, d.doubles = p.admit(p.endpoints[g.Service], d.offers)
	out.Endpoints = d.endpoints
	var more []clustermesh.Problem
	out.Frontends, more = p.frontends(d)
	return out, append(problems, more...)
}

// missingPorts reports the ports for which another cluster's pods cannot be used.
func missingPorts(d demand, s sharer) (problems []clustermesh.Problem) {
	for _, port := range d.ports {
		if slices.ContainsFunc(s.ports, port.Is) {
			continue
		}
		problems = append(problems, clustermesh.Problem{
			Object: d.object, Field: "spec.ports[" + port.String() + "]",
			Message: fmt.Sprintf("cluster %s shares this service without such a port: its pods are not used for it", s.cluster),
			Try:     "give the Service the same ports, by name, protocol and number, in every cluster",
			Warning: true,
		})
	}
	return problems
}

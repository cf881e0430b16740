package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/internal/l4"
)

// plan makes the frontends of one import: each address with each port.
func (p *planner) plan(i clustermesh.Import, ips []netip.Addr) (Import, []clustermesh.Problem) {
	out := Import{Import: i, IPs: ips}
	exporters := map[clustermesh.ClusterName]clustermesh.Export{}
	for _, e := range p.exports[i.Service] {
		exporters[e.Cluster] = e.Export
	}
	for _, e := range p.endpoints[i.Service] {
		// An endpoint whose cluster does not export the service contributes nothing (KEP-1645).
		if _, ok := exporters[e.Cluster]; ok {
			out.Endpoints = append(out.Endpoints, e)
		}
	}
	if i.Type == clustermesh.Headless {
		return out, nil
	}
	var problems []clustermesh.Problem
	for _, port := range i.Ports {
		if port.Proto != l4.TCP && port.Proto != l4.UDP {
			problems = append(problems, clustermesh.Problem{
				Object: "ServiceImport " + i.Service.String(), Field: "ports[" + port.String() + "]",
				Message: port.Proto.String() + " has no socket load balancing: this port is not served",
				Try:     "use TCP or UDP, or reach the pods by a headless service",
				Warning: true,
			})
			continue
		}
		for _, ip := range ips {
			f := Frontend{Addr: l4.New(ip, port.Port, port.Proto), Port: port}
			f.Choice = locality.Select(p.where(), p.candidates(f, out.Endpoints, exporters))
			out.Frontends = append(out.Frontends, f)
			problems = append(problems, familyProblem(i.Service, f)...)
		}
	}
	return out, problems
}

// candidates are the endpoints behind one frontend. A port reaches only clusters whose own Service has
// that name, protocol and number ("strict port conflict", KEP-1645).
func (p *planner) candidates(f Frontend, eps []Endpoint, exporters map[clustermesh.ClusterName]clustermesh.Export) []locality.Candidate {
	var out []locality.Candidate
	for _, e := range eps {
		if !slices.ContainsFunc(exporters[e.Cluster].Ports, func(q clustermesh.ServicePort) bool {
			return q.Name == f.Port.Name && q.Proto == f.Port.Proto && q.Port == f.Port.Port
		}) {
			continue
		}
		for _, port := range e.Ports {
			if port.Name != f.Port.Name || port.Proto != f.Port.Proto || port.Port == 0 {
				continue
			}
			c := p.candidate(e, port.Port)
			if e.Addr.Is4() != f.Addr.IP.Is4() {
				c.Barred = fmt.Sprintf("is %s, the frontend is %s", family(e.Addr), family(f.Addr.IP))
			}
			out = append(out, c)
		}
	}
	return out
}

func (p *planner) candidate(e Endpoint, port uint16) locality.Candidate {
	origin := clustermesh.Origin{Cluster: e.Cluster, Node: e.Node}
	c := locality.Candidate{
		Addr: netip.AddrPortFrom(e.Addr, port), Cluster: e.Cluster, Node: e.Node, Pod: e.Pod,
		Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating,
		Dead: e.Dead, Contact: p.contact(origin),
	}
	if n := p.state.Records[origin].Content.Node; n != nil {
		c.Locality = n.Locality
	}
	if e.Zone != "" {
		c.Locality.Zone = e.Zone
	}
	return c
}

func (p *planner) contact(o clustermesh.Origin) clustermesh.Contact {
	if o == p.self.Origin() || o.Node == "" {
		return clustermesh.Alive
	}
	return p.state.Contacts[o]
}

// where is the node's own standing, from its own record.
func (p *planner) where() locality.Self {
	s := locality.Self{Cluster: p.self.Cluster, Node: p.self.Node}
	if n := p.state.Records[p.self.Origin()].Content.Node; n != nil {
		s.Locality = n.Locality
	}
	return s
}

// familyProblem reports a frontend none of whose endpoints have its IP family.
func familyProblem(s clustermesh.ServiceName, f Frontend) []clustermesh.Problem {
	vs := f.Choice.Verdicts
	if len(vs) == 0 || slices.ContainsFunc(vs, func(v locality.Verdict) bool { return v.Barred == "" }) {
		return nil
	}
	return []clustermesh.Problem{{
		Object: "ServiceImport " + s.String(), Field: "ips[" + f.Addr.IP.String() + "]",
		Message: fmt.Sprintf("frontend %s is %s, but all %d endpoints are of the other family: connections are refused",
			f.Addr, family(f.Addr.IP), len(vs)),
		Try:     "give the pods an " + family(f.Addr.IP) + " address, or remove that family from clustersetCIDRs",
		Warning: true,
	}}
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

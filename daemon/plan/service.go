package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/internal/l4"
)

// demand is what frontends are made of: addresses and ports, and whose endpoints may be behind them.
type demand struct {
	// object names it in Problems: "ServiceImport default/serve".
	object string
	ips    []netip.Addr
	ports  []clustermesh.ServicePort
	prefer locality.Preference
	// offers are the ports of each cluster's own Service; a cluster that is not in it contributes nothing.
	offers    map[clustermesh.ClusterName][]clustermesh.ServicePort
	endpoints []Endpoint
	// doubles is set if two clusters list one address.
	doubles bool
}

// plan makes the frontends of one import: each address with each port.
func (p *planner) plan(i clustermesh.Import, ips []netip.Addr) (Import, []clustermesh.Problem) {
	d := p.importDemand(i, p.exports[i.Service])
	out := Import{Import: i, IPs: ips, Endpoints: d.endpoints, Exports: p.exports[i.Service]}
	if silent(out.Exports) {
		out.Families = familiesOf(out.Endpoints, out.Families)
	}
	if i.Type == clustermesh.Headless {
		return out, nil
	}
	d.ips = ips
	var problems []clustermesh.Problem
	out.Frontends, problems = p.frontends(d)
	return out, problems
}

// importDemand admits the endpoints of clusters that export the service, and no others (KEP-1645).
func (p *planner) importDemand(i clustermesh.Import, exports []clustermesh.ClusterExport) demand {
	d := demand{
		object: "ServiceImport " + i.Service.String(), ports: i.Ports,
		prefer: locality.Preference{LocalOnly: i.InternalTrafficPolicy == clustermesh.PolicyLocal, Distribution: i.TrafficDistribution},
		offers: make(map[clustermesh.ClusterName][]clustermesh.ServicePort, len(exports)),
	}
	for _, e := range exports {
		d.offers[e.Cluster] = e.Ports
	}
	d.endpoints, d.doubles = p.admit(p.endpoints[i.Service], d.offers)
	return d
}

// frontends makes each address with each port a frontend.
func (p *planner) frontends(d demand) (out []Frontend, problems []clustermesh.Problem) {
	for _, port := range d.ports {
		if port.Proto != l4.TCP && port.Proto != l4.UDP {
			problems = append(problems, clustermesh.Problem{
				Object: d.object, Field: "ports[" + port.String() + "]",
				Message: port.Proto.String() + " has no socket load balancing: this port is not served",
				Try:     "use TCP or UDP, or reach the pods by a headless service",
				Warning: true,
			})
			continue
		}
		for _, ip := range d.ips {
			f := Frontend{Addr: l4.New(ip, port.Port, port.Proto), Port: port}
			f.Choice = locality.Select(p.where(), p.candidates(d, port, clustermesh.FamilyOf(ip)), d.prefer)
			out = append(out, f)
			problems = append(problems, familyProblem(d.object, f)...)
		}
	}
	return out, problems
}

// candidates are the endpoints behind one port, of any family; those of another than the frontend's are barred. A
// port reaches only clusters whose own Service has that name, protocol and number ("strict port conflict", KEP-1645).
func (p *planner) candidates(d demand, port clustermesh.ServicePort, family clustermesh.Family) []locality.Candidate {
	out := make([]locality.Candidate, 0, len(d.endpoints))
	var cluster clustermesh.ClusterName
	offered := false
	for i := range d.endpoints {
		e := &d.endpoints[i]
		if e.Cluster != cluster {
			cluster = e.Cluster
			offered = slices.ContainsFunc(d.offers[cluster], port.Is)
		}
		if !offered {
			continue
		}
		for _, q := range e.Ports {
			if q.Name != port.Name || q.Proto != port.Proto || q.Port == 0 {
				continue
			}
			c := p.candidate(e, q.Port)
			if have := clustermesh.FamilyOf(e.Addr); have != family {
				c.Barred = fmt.Sprintf("is %s, the frontend is %s", have, family)
			}
			out = append(out, c)
		}
	}
	if d.doubles {
		p.barDoubles(out)
	}
	return out
}

func (p *planner) candidate(e *Endpoint, port uint16) locality.Candidate {
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
func familyProblem(object string, f Frontend) []clustermesh.Problem {
	vs := f.Choice.Verdicts
	family := clustermesh.FamilyOf(f.Addr.IP)
	if len(vs) == 0 || slices.ContainsFunc(vs, func(v locality.Verdict) bool { return clustermesh.FamilyOf(v.Addr.Addr()) == family }) {
		return nil
	}
	return []clustermesh.Problem{{
		Object: object, Field: "ips[" + f.Addr.IP.String() + "]",
		Message: fmt.Sprintf("frontend %s is %s, but all %d endpoints are of the other family: connections are refused",
			f.Addr, family, len(vs)),
		Try:     fmt.Sprintf("give the pods an %s address, or remove that family from clustersetCIDRs or the Service", family),
		Warning: true,
	}}
}

// silent reports exports of which none says its families: those of older daemons.
func silent(exports []clustermesh.ClusterExport) bool {
	return !slices.ContainsFunc(exports, func(e clustermesh.ClusterExport) bool { return len(e.Families) > 0 })
}

// familiesOf returns the families that the endpoints have, IPv4 first, or the default if there are none.
func familiesOf(es []Endpoint, def []clustermesh.Family) (out []clustermesh.Family) {
	for _, f := range []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6} {
		if slices.ContainsFunc(es, func(e Endpoint) bool { return clustermesh.FamilyOf(e.Addr) == f }) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return def
	}
	return out
}

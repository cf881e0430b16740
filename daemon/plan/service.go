package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// demand is a service as a plan sees it: the addresses and ports of its frontends, whose
// endpoints may be behind them, and the frontends made from that. It is immutable once planned.
type demand struct {
	// kind and service name it in Problems: "ServiceImport default/serve".
	kind            string
	service         clustermesh.ServiceName
	ips             []netip.Addr
	ports           []clustermesh.ServicePort
	affinitySeconds uint32
	prefer          locality.Preference
	// offers are sorted by cluster. A cluster that is not among them contributes nothing
	// (KEP-1645).
	offers []offer
	rows   []row
	stand  *stand
	// serial is the number of the plan in which this demand was last planned.
	serial uint64
	// at is the time of the plan, and wait how long it holds if nothing changes, see moves. Past
	// limits it by what was planned before, over the time of a ramp, and now is for the next.
	// Learning is that of the Inputs.
	at        time.Time
	wait      time.Duration
	learning  bool
	over      time.Duration
	past, now []levels

	desired  []datapath.Frontend
	problems []clustermesh.Problem
}

func (d *demand) ref() problem.Ref { return d.service.Ref(d.kind) }

// Version grows when the service or one of its endpoints differs from the previous plan.
func (d *demand) Version() uint64 { return d.serial }

// Desired returns what the kernel should hold of it. It must not be changed.
func (d *demand) Desired() []datapath.Frontend { return d.desired }

// Frontends returns its addresses with its ports, and the verdict on every endpoint.
func (d *demand) Frontends() []Frontend {
	out, _ := d.frontends()
	return out
}

// Endpoints returns the endpoints of all clusters that offer theirs, each list of ports at an
// address once per cluster, except those that no client may connect to. An endpoint that names no
// zone gets its node's.
func (d *demand) Endpoints() []clustermesh.ClusterEndpoint {
	members, _ := d.admit()
	out := make([]clustermesh.ClusterEndpoint, 0, len(members))
	for _, m := range members {
		if m.stray().Why != "" {
			continue
		}
		e := clustermesh.ClusterEndpoint{Endpoint: *m.Endpoint, Cluster: m.from.origin.Cluster, Dead: m.from.dead}
		e.Zone = cmp.Or(m.Zone, m.from.of(m.Node).locality.Zone)
		out = append(out, e)
	}
	return out
}

// plan computes what the kernel should hold for the service.
func (d *demand) plan() {
	fs, problems := d.frontends()
	d.problems, d.wait = append(d.problems, problems...), d.moves(fs)
	for _, f := range fs {
		if d.over > 0 {
			_, since := d.ramp(f.Addr)
			d.now = append(d.now, levels{f.Addr, f.Choice.Levels, f.Choice.Ramping, since})
		}
		out := datapath.Frontend{Addr: f.Addr, Service: d.service.String(), AffinitySeconds: d.affinitySeconds}
		for _, v := range f.Choice.Verdicts {
			if v.Weight > 0 {
				out.Backends = append(out.Backends, datapath.Backend{IP: v.Addr.Addr(), Port: v.Addr.Port(), Weight: v.Weight})
			}
		}
		out.Backends = datapath.SortBackends(out.Backends)
		out.Idle = idle(f)
		d.desired = append(d.desired, out)
	}
}

// idle returns the endpoints whose sockets may stay although they get no new ones. Only connected
// UDP sockets are closed because of readiness or distance, so other frontends have none.
func idle(f Frontend) (out []datapath.Idle) {
	if f.Addr.Proto != l4.UDP {
		return nil
	}
	for _, v := range f.Choice.Verdicts {
		if v.Idle() {
			out = append(out, datapath.Idle{Addr: v.Addr, Unready: !v.Ready})
		}
	}
	return out
}

// frontends makes a frontend of each address with each port.
func (d *demand) frontends() (out []Frontend, problems []clustermesh.Problem) {
	members, doubles := d.admit()
	for _, port := range d.ports {
		if !port.Proto.Balanced() {
			problems = append(problems, d.ref().Problem(clustermesh.Problem{
				Code:    problem.PortNotServed,
				Field:   "ports[" + port.String() + "]",
				Message: port.Proto.String() + " has no socket load balancing: this port is not served",
				Try:     "use TCP or UDP, or reach the pods by a headless service",
				Warning: true,
			}))
		}
	}
	for addr, port := range d.Addrs() {
		f := Frontend{Addr: addr, Port: port}
		ramp, _ := d.ramp(addr)
		f.Choice = locality.Select(d.stand.where, d.candidates(members, doubles, port, clustermesh.FamilyOf(addr.IP)), d.prefer, ramp)
		out = append(out, f)
		problems = append(problems, d.familyProblem(f)...)
	}
	return out, problems
}

// offered returns the ports of a cluster's own Service, and whether the cluster offers its
// endpoints.
func (d *demand) offered(c clustermesh.ClusterName) ([]clustermesh.ServicePort, bool) {
	for _, o := range d.offers {
		if o.cluster == c {
			return o.ports, true
		}
	}
	return nil, false
}

// candidates returns the endpoints behind one port, of any family; those of another family than the
// frontend's are barred. A port reaches only clusters whose own Service has that name, protocol and
// number ("strict port conflict", KEP-1645).
func (d *demand) candidates(members []member, doubles bool, port clustermesh.ServicePort, family clustermesh.Family) []locality.Candidate {
	out := make([]locality.Candidate, 0, len(members))
	var strays map[int]bool // by their place in out
	var cluster clustermesh.ClusterName
	served := false
	for _, m := range members {
		if c := m.from.origin.Cluster; c != cluster {
			cluster = c
			ports, _ := d.offered(c)
			served = slices.ContainsFunc(ports, port.Is)
		}
		if !served {
			continue
		}
		for _, q := range m.Ports {
			if q.Name != port.Name || q.Proto != port.Proto || q.Port == 0 {
				continue
			}
			c := m.candidate(q.Port)
			c.Drained, c.DrainedBy = d.drained(m)
			c.Barred = m.stray().Why
			if doubles && m.stray().Of != "" {
				if strays == nil {
					strays = map[int]bool{}
				}
				strays[len(out)] = true
			}
			if have := clustermesh.FamilyOf(m.Addr); have != family {
				c.Barred = fmt.Sprintf("is %s, the frontend is %s", have, family)
			}
			out = append(out, c)
		}
	}
	if doubles {
		d.barDoubles(out, strays)
	}
	return out
}

func (m member) candidate(port uint16) locality.Candidate {
	about := m.from.of(m.Node)
	c := locality.Candidate{
		Addr: netip.AddrPortFrom(m.addr(), port), Cluster: m.from.origin.Cluster, Node: m.Node, Pod: m.Pod,
		Ready: m.Ready, Serving: m.Serving, Terminating: m.Terminating && !m.Ready,
		Dead: m.from.dead, Contact: about.contact, Fault: about.tunnel.Why, Impaired: about.tunnel.Impaired, Locality: about.locality,
	}
	if m.Zone != "" {
		c.Locality.Zone = m.Zone
	}
	return c
}

// familyProblem reports a frontend if none of its endpoints have its IP family.
func (d *demand) familyProblem(f Frontend) []clustermesh.Problem {
	vs := f.Choice.Verdicts
	family := clustermesh.FamilyOf(f.Addr.IP)
	if len(vs) == 0 || slices.ContainsFunc(vs, func(v locality.Verdict) bool { return clustermesh.FamilyOf(v.Addr.Addr()) == family }) {
		return nil
	}
	return []clustermesh.Problem{d.ref().Problem(clustermesh.Problem{
		Code:  problem.FamilyWithoutEndpoints,
		Field: "ips[" + f.Addr.IP.String() + "]",
		Message: fmt.Sprintf("frontend %s is %s, but all %d endpoints are of the other family: connections are refused",
			f.Addr, family, len(vs)),
		Try:     fmt.Sprintf("give the pods an %s address, or list only the other family in spec.ipFamilies of the Service", family),
		Warning: true,
	})}
}

// familiesOf returns the families of the endpoints, IPv4 first, or the default if there are none.
func familiesOf(es []member, def []clustermesh.Family) (out []clustermesh.Family) {
	for _, f := range []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6} {
		if slices.ContainsFunc(es, func(e member) bool { return clustermesh.FamilyOf(e.Addr) == f }) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return def
	}
	return out
}

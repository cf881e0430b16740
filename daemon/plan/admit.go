package plan

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// admit returns the endpoints of the clusters in offers, an address once per cluster: while a pod's address moves
// from one record to another both list it. It reports whether two clusters list one address. Endpoints come, and
// stay, in the order of their clusters. The result may be a part of all.
func (p *planner) admit(all []Endpoint, offers map[clustermesh.ClusterName][]clustermesh.ServicePort) (out []Endpoint, doubles bool) {
	clear(p.at)
	whole := true // out is still a part of all: mostly nothing is left out, and nothing is copied
	for i := range all {
		e := &all[i]
		_, ok := offers[e.Cluster]
		j, again := p.at[e.Addr]
		twin := ok && again && out[j].Cluster == e.Cluster
		if !ok || twin {
			if whole {
				out, whole = append(make([]Endpoint, 0, len(all)), out...), false
			}
			if twin && !out[j].good() && e.good() {
				out[j] = *e
			}
			continue
		}
		if whole {
			out = all[: i+1 : i+1]
		} else {
			out = append(out, *e)
		}
		doubles = doubles || again
		p.at[e.Addr] = len(out) - 1
	}
	return out, doubles
}

// good reports an endpoint that takes connections, as far as records say.
func (e *Endpoint) good() bool { return e.Ready && !e.Terminating && !e.Dead }

// barDoubles lets an address count once where several clusters list it, as they do when one mirrors another's pods
// by hand: for the cluster where it is good, then for the own one, then for the first.
func (p *planner) barDoubles(cs []locality.Candidate) {
	first := make(map[netip.AddrPort]int, len(cs))
	for i := range cs {
		j, again := first[cs[i].Addr]
		if !again {
			first[cs[i].Addr] = i
			continue
		}
		lost, won := i, j
		if p.value(cs[i]) > p.value(cs[j]) {
			lost, won = j, i
		}
		first[cs[i].Addr] = won
		if cs[lost].Barred == "" {
			cs[lost].Barred = "cluster " + string(cs[won].Cluster) + " lists the same address, which counts once"
		}
	}
}

func (p *planner) value(c locality.Candidate) (v int) {
	if c.Ready && !c.Terminating && !c.Dead {
		v += 2
	}
	if c.Cluster == p.self.Cluster {
		v++
	}
	return v
}

// PortChoice is what a whole cluster uses for one port and family of an import.
type PortChoice struct {
	Port   clustermesh.ServicePort
	Family clustermesh.Family
	Choice locality.Choice
}

// ForCluster returns, per port and family of an import, the endpoints that a cluster as a whole would use now: its
// own while one is ready, else all others'. It is for clients that socket hooks do not see, which a proxy of the
// cluster serves; so it does not stand on any node or in any zone, and knows all protocols. A port that no cluster
// has an endpoint for has no element; a headless import has none at all.
func ForCluster(s clustermesh.State, cluster clustermesh.ClusterName, i Import) (out []PortChoice) {
	if i.Type == clustermesh.Headless {
		return nil
	}
	p := &planner{state: s, self: Self{Cluster: cluster}}
	d := p.importDemand(i.Import, i.Exports)
	d.endpoints = i.Endpoints
	for _, port := range d.ports {
		for _, family := range []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6} {
			cs := slices.DeleteFunc(p.candidates(d, port, family), func(c locality.Candidate) bool {
				return clustermesh.FamilyOf(c.Addr.Addr()) != family
			})
			if len(cs) > 0 {
				out = append(out, PortChoice{port, family, locality.Select(p.where(), cs, d.prefer)})
			}
		}
	}
	return out
}

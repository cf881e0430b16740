package plan

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// member is an endpoint in its record.
type member struct {
	*clustermesh.Endpoint
	from *source
}

// admit returns the endpoints of the clusters that offer theirs, an address once per cluster: while a pod's address moves
// from one record to another both list it. It reports whether two clusters list one address. Endpoints come, and
// stay, in the order of their clusters.
func (d *demand) admit() (out []member, doubles bool) {
	n := 0
	for _, r := range d.rows {
		n += int(r.last - r.first)
	}
	out = make([]member, 0, n)
	at := make(map[netip.Addr]int, n)
	for _, r := range d.rows {
		if _, ok := d.offered(r.from.origin.Cluster); !ok {
			continue
		}
		es := r.endpoints()
		for i := range es {
			m := member{&es[i], r.from}
			j, again := at[m.Addr]
			if again && out[j].from.origin.Cluster == r.from.origin.Cluster {
				if !out[j].good() && m.good() {
					out[j] = m
				}
				continue
			}
			doubles = doubles || again
			at[m.Addr] = len(out)
			out = append(out, m)
		}
	}
	return out, doubles
}

// good reports an endpoint that takes connections, as far as records say.
func (m member) good() bool { return m.Ready && !m.Terminating && !m.from.dead }

// barDoubles lets an address count once where several clusters list it, as they do when one mirrors another's pods
// by hand: for the cluster where it is good, then for the own one, then for the first.
func (d *demand) barDoubles(cs []locality.Candidate) {
	first := make(map[netip.AddrPort]int, len(cs))
	for i := range cs {
		j, again := first[cs[i].Addr]
		if !again {
			first[cs[i].Addr] = i
			continue
		}
		lost, won := i, j
		if d.value(cs[i]) > d.value(cs[j]) {
			lost, won = j, i
		}
		first[cs[i].Addr] = won
		if cs[lost].Barred == "" {
			cs[lost].Barred = "cluster " + string(cs[won].Cluster) + " lists the same address, which counts once"
		}
	}
}

func (d *demand) value(c locality.Candidate) (v int) {
	if c.Ready && !c.Terminating && !c.Dead {
		v += 2
	}
	if c.Cluster == d.stand.self.Cluster {
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

// ForCluster returns, per port and family of an import, the endpoints that the own cluster as a whole would use now: its
// own while one is ready, else all others'. It is for clients that socket hooks do not see, which a proxy of the
// cluster serves; so it does not stand on any node or in any zone, and knows all protocols. A port that no cluster
// has an endpoint for has no element; a headless import has none at all.
func (i *Import) ForCluster() (out []PortChoice) {
	if i.Type == clustermesh.Headless {
		return nil
	}
	anywhere := locality.Self{Cluster: i.stand.self.Cluster}
	members, doubles := i.admit()
	for _, port := range i.Ports {
		for _, family := range []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6} {
			cs := slices.DeleteFunc(i.candidates(members, doubles, port, family), func(c locality.Candidate) bool {
				return clustermesh.FamilyOf(c.Addr.Addr()) != family
			})
			if len(cs) > 0 {
				out = append(out, PortChoice{port, family, locality.Select(anywhere, cs, i.prefer)})
			}
		}
	}
	return out
}

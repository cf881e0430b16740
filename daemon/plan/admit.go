package plan

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// member is an endpoint and the record that it comes from.
type member struct {
	*clustermesh.Endpoint
	from *source
}

// admit returns the endpoints of the clusters that offer theirs, each list of ports at an address
// once per cluster: while a pod's address moves from one record to another, both list it. Doubles
// reports whether any address is there more than once. Endpoints are in the order of their
// clusters, and must stay so.
func (d *demand) admit() (out []member, doubles bool) {
	n := 0
	for _, r := range d.rows {
		n += int(r.last - r.first)
	}
	out = make([]member, 0, n)
	first, others := make(map[netip.Addr]int, n), map[listed]int{}
	for _, r := range d.rows {
		if _, ok := d.offered(r.from.origin.Cluster); !ok {
			continue
		}
		es := r.endpoints()
		for i := range es {
			m := member{&es[i], r.from}
			at, again := first[m.Addr]
			if !again {
				first[m.Addr] = len(out)
				out = append(out, m)
				continue
			}
			if !out[at].alike(m) {
				doubles = true
				if at, again = others[m.listed()]; !again {
					others[m.listed()] = len(out)
					out = append(out, m)
					continue
				}
			}
			if !out[at].good() && m.good() {
				out[at] = m
			}
		}
	}
	return out, doubles
}

// listed is what a cluster lists of an address: there can be several listeners at one.
type listed struct {
	cluster clustermesh.ClusterName
	addr    netip.Addr
	ports   string
}

func (m member) listed() listed {
	return listed{m.from.origin.Cluster, m.Addr, fmt.Sprint(m.Ports)}
}

// alike reports whether two members with one address are the same listeners of the same cluster.
func (m member) alike(o member) bool {
	return m.from.origin.Cluster == o.from.origin.Cluster && slices.Equal(m.Ports, o.Ports)
}

// addr is where this node reaches the endpoint. A pod on the network of another cluster's node is
// reached inside the tunnel to that node.
func (m member) addr() netip.Addr {
	if at := m.from.of(m.Node).inside; m.OnHost && at.IsValid() && clustermesh.FamilyOf(at) == clustermesh.FamilyOf(m.Addr) {
		return at
	}
	return m.Addr
}

// good reports whether the endpoint takes connections, as far as records say.
func (m member) good() bool { return m.Ready && !m.from.dead }

// barDoubles makes a listener count only once if several clusters list it, for example because one
// mirrors another's pods by hand, or one does with other ports beside it. The cluster to which the
// address belongs wins, then one where the endpoint is good, then this node's own cluster. Of
// equals any will do, since all lead to the same address. Strays are the candidates with an address
// of another cluster.
func (d *demand) barDoubles(cs []locality.Candidate, strays map[int]bool) {
	first := make(map[netip.AddrPort]int, len(cs))
	for i := range cs {
		j, again := first[cs[i].Addr]
		if !again {
			first[cs[i].Addr] = i
			continue
		}
		lost, won := i, j
		if d.value(cs[i], strays[i]) > d.value(cs[j], strays[j]) {
			lost, won = j, i
		}
		first[cs[i].Addr] = won
		if cs[lost].Barred == "" {
			cs[lost].Barred = "cluster " + string(cs[won].Cluster) + " lists the same address and port, which count once"
		}
	}
}

func (d *demand) value(c locality.Candidate, stray bool) (v int) {
	if !stray {
		v += 4
	}
	if c.Ready && !c.Dead {
		v += 2
	}
	if c.Cluster == d.stand.self.Cluster {
		v++
	}
	return v
}

// PortChoice is what a whole cluster uses for one port and IP family of an import.
type PortChoice struct {
	Port   clustermesh.ServicePort
	Family clustermesh.Family
	Choice locality.Choice
}

// ForCluster returns, per port and family of an import, the endpoints that this cluster as a whole
// would use now: its own while one is ready, otherwise all others'. It is for clients that the
// socket hooks do not see and that a proxy of the cluster serves, so it assumes no node or zone,
// and covers all protocols. A port without endpoints in any cluster has no element; a headless
// import has no elements at all.
func (i *Import) ForCluster() (out []PortChoice) {
	if i.Type == clustermesh.Headless {
		return nil
	}
	anywhere := locality.Self{Cluster: i.stand.self.Cluster}
	prefer := i.prefer // a proxy knows no shares, so nothing spills
	prefer.Factor, prefer.MinReady = 0, clustermesh.MinReady{}
	members, doubles := i.admit()
	for _, port := range i.Ports {
		for _, family := range []clustermesh.Family{clustermesh.IPv4, clustermesh.IPv6} {
			cs := slices.DeleteFunc(i.candidates(members, doubles, port, family), func(c locality.Candidate) bool {
				return clustermesh.FamilyOf(c.Addr.Addr()) != family
			})
			for j := range cs {
				cs[j].Drained = math.Floor(cs[j].Drained) // it counts when it is over
			}
			if len(cs) > 0 {
				out = append(out, PortChoice{port, family, locality.Select(anywhere, cs, prefer, locality.Ramp{})})
			}
		}
	}
	return out
}

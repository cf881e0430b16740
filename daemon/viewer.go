package daemon

import (
	"iter"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/health"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// viewer turns a moment into answers. It is pure. Only the fields that an answer needs have to be
// set.
type viewer struct {
	*moment
	self    plan.Self
	heard   map[clustermesh.Origin]time.Time
	counted counted
	peers   map[key.Public]wireguard.PeerStatus
	rtts    map[clustermesh.Origin]time.Duration // of other clusters' nodes
	health  health.Tunnels
}

// counted is what the load balancer holds and has counted.
type counted struct {
	frontends []datapath.Frontend // of services only
	services  map[l4.Addr]frontendCounts
	backends  map[flow]uint64 // connects; only flows that have some
	ahead     []string        // programs of other software that run before strait's
}

// frontendCounts count the outcomes of connections to a frontend.
type frontendCounts struct{ connects, refused uint64 }

// flow is a frontend and one of its backends.
type flow struct {
	frontend l4.Addr
	backend  netip.AddrPort
}

// clusters sums up the records by cluster, in one pass: there may be thousands of nodes.
func (v viewer) clusters() []api.Cluster {
	names := v.state.Clusters()
	out := make([]api.Cluster, len(names))
	at := make(map[clustermesh.ClusterName]*api.Cluster, len(names))
	for i, name := range names {
		drained := v.state.Records.Get(clustermesh.Origin{Cluster: name}).Content.Drain.Drained(v.applied)
		out[i] = api.Cluster{Name: string(name), State: v.stateOf(name), Drained: drained}
		at[name] = &out[i]
	}
	claimed := v.state.Claimed()
	for o, r := range v.state.Records.All() {
		c := at[o.Cluster]
		c.Exports += len(r.Content.Exports)
		if c.ConfigLeftOut += r.Unasked; o.Cluster != v.self.Cluster {
			c.Config += len(r.Content.Config)
		}
		c.Endpoints += len(r.Content.Endpoints)
		for i := range r.Content.Endpoints {
			if r.Content.Endpoints[i].Addr.Is6() {
				c.EndpointsIPv6++
			}
		}
		if o.Node == "" {
			continue
		}
		c.Nodes++
		if o == v.self.Origin() || v.state.Contacts.Get(o).Heard() {
			c.Alive++
		} else if claimed[o] && v.state.Dead(o) {
			c.Dead++
		}
		if t := v.heard[o]; t.After(c.Heard) {
			c.Heard = t
		}
		if rtt := milliseconds(v.rtts[o]); o.Cluster != v.self.Cluster && rtt > 0 && (c.RTT == 0 || rtt < c.RTT) {
			c.RTT = rtt
		}
		if h, probed := v.health[o]; probed {
			c.Tunnels = addTunnel(c.Tunnels, h)
		}
	}
	return out
}

// stateOf returns a cluster's state as this node sees it: that of the best contact to any of its
// nodes.
func (v viewer) stateOf(name clustermesh.ClusterName) api.ClusterState {
	if name == v.self.Cluster {
		return api.Here
	}
	state, _ := stateOf(v.state.Contacts, name)
	return state
}

// stateOf returns the state of a cluster by the contacts to its nodes, and whether there is any.
func stateOf(contacts clustermesh.ByOrigin[clustermesh.Contact], name clustermesh.ClusterName) (state api.ClusterState, known bool) {
	best := clustermesh.Held
	for o, contact := range contacts.Of(name) {
		if o.Node != "" {
			known = true
			if contact.Better(best) {
				best = contact
			}
		}
	}
	switch {
	case best.Heard():
		return api.Joined, known
	case best == clustermesh.Quiet:
		return api.Quiet, known
	}
	return api.Held, known
}

// members counts the nodes by state, each once.
func (v viewer) members() map[string]int {
	claimed, out := v.state.Claimed(), map[string]int{}
	for r := range v.state.Nodes() {
		switch {
		case r.Origin == v.self.Origin(), v.state.Contacts.Get(r.Origin).Heard():
			out["alive"]++
		case claimed[r.Origin] && v.state.Dead(r.Origin):
			out["dead"]++
		default:
			out[v.state.Contacts.Get(r.Origin).String()]++
		}
	}
	return out
}

func (v viewer) services() (out []api.Service) {
	kernel := map[l4.Addr]datapath.Frontend{}
	for _, f := range v.counted.frontends {
		kernel[f.Addr] = f
	}
	want := map[l4.Addr]datapath.Frontend{}
	for _, f := range v.result.Desired.Frontends {
		want[f.Addr] = f
	}
	exports, globals := v.sharedBy()
	add := func(s api.Service, exporters []clustermesh.ClusterName, frontends []plan.Frontend) {
		for _, c := range exporters {
			s.Exporters = append(s.Exporters, string(c))
		}
		for _, f := range frontends {
			in, ok := kernel[f.Addr]
			s.Frontends = append(s.Frontends, v.frontend(f, ok && in.Equal(want[f.Addr])))
		}
		out = append(out, s)
	}
	for _, i := range v.result.Imports {
		add(api.Service{Name: i.Service.String(), Type: string(i.Type), IPs: i.IPs, Policies: exports[i.Service]}, i.Exporters, i.Frontends())
	}
	for _, g := range v.result.Globals {
		add(api.Service{Name: g.Service.String(), Type: "Global", IPs: g.IPs, Policies: globals[g.Service]}, g.Sharers, g.Frontends())
	}
	return out
}

func (v viewer) frontend(f plan.Frontend, inKernel bool) api.Frontend {
	out := api.Frontend{Addr: f.Addr, Port: f.Port.Name, Tier: f.Choice.Tier.String(), InKernel: inKernel, Ahead: v.counted.ahead,
		Connects: v.counted.services[f.Addr].connects, Refused: v.counted.services[f.Addr].refused}
	total := uint32(0)
	for _, x := range f.Choice.Verdicts {
		total += x.Weight
	}
	verdicts := slices.Clone(f.Choice.Verdicts)
	slices.SortStableFunc(verdicts, func(a, b locality.Verdict) int { return int(a.Tier) - int(b.Tier) })
	for _, x := range verdicts {
		e := api.Endpoint{
			Addr: x.Addr, Cluster: string(x.Cluster), Node: string(x.Node), Pod: x.Pod,
			Zone: x.Locality.Zone, Region: x.Locality.Region, Tier: x.Tier.String(),
			Ready: x.Ready && !x.Dead && x.Barred == "", Weight: x.Weight, Reason: x.Reason, Drained: x.Drained,
			Connects: v.counted.backends[flow{f.Addr, x.Addr}],
			RTT:      milliseconds(v.rtts[clustermesh.Origin{Cluster: x.Cluster, Node: x.Node}]),
		}
		if total > 0 {
			e.Share = float64(x.Weight) / float64(total)
		}
		out.Endpoints = append(out.Endpoints, e)
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// balanced is what traffic needs to know about a planned service.
type balanced interface {
	Addrs() iter.Seq2[l4.Addr, clustermesh.ServicePort]
	Behind(clustermesh.ServicePort) iter.Seq2[clustermesh.ClusterName, netip.AddrPort]
}

// traffic calls each with the counts of every frontend.
func (v viewer) traffic(each func(api.Traffic)) {
	var backends []api.BackendTraffic // reused for each frontend
	add := func(service clustermesh.ServiceName, s balanced) {
		name := service.String()
		for addr, port := range s.Addrs() {
			backends = backends[:0]
			for cluster, backend := range s.Behind(port) {
				backends = append(backends, api.BackendTraffic{
					Addr: backend, Cluster: string(cluster), Connects: v.counted.backends[flow{addr, backend}],
				})
			}
			n := v.counted.services[addr]
			each(api.Traffic{Service: name, Frontend: addr, Connects: n.connects, Refused: n.refused, Backends: backends})
		}
	}
	for _, i := range v.result.Imports {
		add(i.Service, i)
	}
	for _, g := range v.result.Globals {
		add(g.Service, g)
	}
}

func (v viewer) nodes() (out []api.Node) {
	claimed := v.state.Claimed()
	for r := range v.state.Nodes() {
		n := r.Content.Node
		a := api.Node{
			Cluster: string(r.Origin.Cluster), Name: string(r.Origin.Node), Contact: v.state.Contacts.Get(r.Origin).String(),
			Region: n.Locality.Region, Zone: n.Locality.Zone,
			Addresses: n.Addresses, Prefixes: n.Prefixes, ClusterIPs: n.ClusterIPs, Endpoints: len(r.Content.Endpoints),
			Stamp: r.Stamp.String(), Heard: v.heard[r.Origin], Version: n.Version,
		}
		switch {
		case r.Origin == v.self.Origin():
			a.Contact = "self"
		case claimed[r.Origin]:
			a.Dead = v.state.Dead(r.Origin)
			home, away := v.state.Witnesses(r.Origin)
			for _, w := range append(home, away...) {
				a.Witnesses = append(a.Witnesses, w.String())
			}
		}
		a.Tunnel = v.tunnel(r.Origin, n.PublicKey)
		if e, is := v.result.Mesh.End(r.Origin); is {
			a.Peer = &api.Peer{PublicKey: e.Key, Endpoint: e.Underlay, AllowedIPs: e.AllowedIPs, NoTunnel: e.Why}
		}
		out = append(out, a)
	}
	return out
}

// tunnels lists the tunnels of a node, or of all for "".
func (v viewer) tunnels(of string) (out []api.NodeTunnels) {
	for _, e := range v.result.Mesh.Ends {
		a := api.NodeTunnels{Node: e.Origin.String()}
		if of != "" && of != a.Node {
			continue
		}
		for _, t := range v.result.Mesh.Tunnels(e.Origin) {
			to := api.TunnelTo{Node: t.To.String()}
			if len(t.Reached) > 1 || t.Reached[0] != t.To {
				for _, o := range t.Reached {
					to.Reached = append(to.Reached, o.String())
				}
			}
			a.Tunnels = append(a.Tunnels, to)
		}
		out = append(out, a)
	}
	return out
}

func (v viewer) tunnel(o clustermesh.Origin, k key.Public) *api.Tunnel {
	p, ok := v.peers[k]
	if !ok || k.IsZero() {
		return nil
	}
	t := &api.Tunnel{Underlay: p.Underlay, Handshake: p.Handshake, Sent: p.Sent, Received: p.Received}
	if h, probed := v.health[o]; probed {
		t.State, t.Since, t.RTT, t.Loss = h.State.String(), h.Since, milliseconds(h.RTT), h.Loss
	}
	return t
}

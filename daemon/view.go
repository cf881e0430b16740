package daemon

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/sockdestroy"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// View answers the API from the latest moment and from what the kernel holds now; nil before the first.
func (d *Daemon) View() *api.View {
	m := d.now()
	if m == nil {
		return nil
	}
	held := d.kernel.inspect()
	v := viewer{moment: m, self: d.self(), held: held, heard: d.gossip.Heard()}
	status := api.Status{
		Cluster: string(d.self().Cluster), Node: d.config.Node, Version: d.version,
		Time: time.Now(), Applied: m.applied,
		Ready:   !m.applied.IsZero() && held.datapath.Attached,
		Waiting: m.waiting, Leader: d.gossip.Leader(),
		Clusters: v.clusters(), Origins: len(m.state.Records), Datapath: held.datapath,
	}
	problems := slices.Concat(m.problems, d.gossip.Problems(), held.problems)
	if d.kube != nil {
		problems = append(problems, d.kube.writer.Problems()...)
	}
	if len(d.config.DNS.Listen) > 0 {
		problems = append(problems, d.dns.Problems()...)
	}
	for _, p := range clustermesh.SortProblems(problems) {
		status.Problems = append(status.Problems, api.Problem(p))
	}
	status.Problems = append(status.Problems, d.api.Problems()...)
	return &api.View{Status: status, Services: v.services(), Nodes: v.nodes()}
}

// viewer turns a moment into answers. Pure.
type viewer struct {
	*moment
	self  plan.Self
	held  held
	heard map[clustermesh.Origin]time.Time
}

func (v viewer) clusters() (out []api.Cluster) {
	for _, name := range v.state.Clusters() {
		c := api.Cluster{Name: string(name), State: "held"}
		for o, r := range v.state.Records {
			if o.Cluster != name {
				continue
			}
			c.Exports += len(r.Content.Exports)
			c.Endpoints += len(r.Content.Endpoints)
			if o.Node == "" {
				continue
			}
			c.Nodes++
			if o == v.self.Origin() || v.state.Contacts[o] == clustermesh.Alive {
				c.Alive++
			} else if v.state.Dead(o) {
				c.Dead++
			}
			if t := v.heard[o]; t.After(c.Heard) {
				c.Heard = t
			}
		}
		switch {
		case name == v.self.Cluster:
			c.State = "here"
		case v.state.Reachable(name):
			c.State = "joined"
		}
		out = append(out, c)
	}
	return out
}

func (v viewer) services() (out []api.Service) {
	kernel := map[l4.Addr]datapath.Frontend{}
	for _, f := range v.held.frontends {
		kernel[f.Addr] = f
	}
	want := map[l4.Addr]datapath.Frontend{}
	for _, f := range v.result.Desired.Frontends {
		want[f.Addr] = f
	}
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
		add(api.Service{Name: i.Service.String(), Type: string(i.Type), IPs: i.IPs}, i.Exporters, i.Frontends())
	}
	for _, g := range v.result.Globals {
		add(api.Service{Name: g.Service.String(), Type: "Global", IPs: g.IPs}, g.Sharers, g.Frontends())
	}
	return out
}

func (v viewer) frontend(f plan.Frontend, inKernel bool) api.Frontend {
	out := api.Frontend{Addr: f.Addr, Port: f.Port.Name, Tier: f.Choice.Tier.String(), InKernel: inKernel,
		Connects: v.held.services[f.Addr].Connects, Refused: v.held.services[f.Addr].Refused}
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
			Ready: x.Ready && !x.Terminating && !x.Dead && x.Barred == "", Weight: x.Weight, Reason: x.Reason,
			Connects: v.held.backends[flow{f.Addr, x.Addr}],
		}
		if total > 0 {
			e.Share = float64(x.Weight) / float64(total)
		}
		out.Endpoints = append(out.Endpoints, e)
	}
	return out
}

func (v viewer) nodes() (out []api.Node) {
	for r := range v.state.Nodes() {
		n := r.Content.Node
		a := api.Node{
			Cluster: string(r.Origin.Cluster), Name: string(r.Origin.Node), Contact: v.state.Contacts[r.Origin].String(),
			Dead: v.state.Dead(r.Origin), Region: n.Locality.Region, Zone: n.Locality.Zone,
			Addresses: n.Addresses, Prefixes: n.Prefixes, Endpoints: len(r.Content.Endpoints),
			Stamp: r.Stamp.String(), Heard: v.heard[r.Origin],
		}
		if r.Origin == v.self.Origin() {
			a.Contact, a.Dead = "self", false
		} else {
			home, away := v.state.Witnesses(r.Origin)
			for _, w := range append(home, away...) {
				a.Witnesses = append(a.Witnesses, w.String())
			}
		}
		a.Tunnel = v.tunnel(n.PublicKey)
		out = append(out, a)
	}
	return out
}

func (v viewer) tunnel(k key.Public) *api.Tunnel {
	for _, p := range v.held.peers {
		if p.Key == k && !k.IsZero() {
			return &api.Tunnel{Underlay: p.Underlay, Handshake: p.Handshake, Sent: p.Sent, Received: p.Received}
		}
	}
	return nil
}

// held is what the kernel holds, read back.
type held struct {
	datapath  api.Datapath
	frontends []datapath.Frontend
	services  map[l4.Addr]socklb.ServiceRow
	backends  map[flow]uint64 // connects
	peers     []wireguard.PeerStatus
	problems  []clustermesh.Problem
}

// flow is a backend of a frontend.
type flow struct {
	frontend l4.Addr
	backend  netip.AddrPort
}

// inspect reads the kernel. A part that is not open yet is simply absent: apply reports why.
func (k *kernel) inspect() (h held) {
	k.mu.Lock()
	lb, device := k.lb, k.device
	k.mu.Unlock()
	h.datapath = api.Datapath{Mesh: "off", Pins: k.config.BPF.Pins, Cgroup: k.config.BPF.Cgroup}
	if k.config.Mesh.on() {
		h.datapath.Mesh = "down"
	}
	unreadable := func(target string, err error) {
		h.problems = append(h.problems, clustermesh.Problem{Object: target, Message: "read back: " + err.Error()})
	}
	h.datapath.Destroyed = k.stale.destroyed()
	if lb != nil {
		h.balancer(lb, unreadable)
	}
	if device != nil {
		var err error
		if h.peers, err = device.Peers(); err != nil {
			unreadable("wireguard", err)
		}
		h.datapath.Mesh = string(device.Kind())
	}
	return h
}

// balancer reads what the load balancer holds and counted.
func (h *held) balancer(lb *socklb.LB, unreadable func(string, error)) {
	var err error
	if h.frontends, err = lb.Frontends(); err != nil {
		unreadable("socklb", err)
	}
	d := &h.datapath
	d.Attached, d.Cgroup, d.Frontends = true, lb.Cgroup(), len(h.frontends)
	distinct := map[netip.AddrPort]bool{}
	for _, f := range h.frontends {
		for _, b := range f.Backends {
			distinct[b.AddrPort()] = true
		}
	}
	d.Backends = len(distinct)
	backends, services, err := lb.Counters()
	if err != nil {
		unreadable("socklb", err)
	}
	h.services, h.backends = map[l4.Addr]socklb.ServiceRow{}, map[flow]uint64{}
	for _, r := range services {
		h.services[r.Addr] = r
	}
	for _, r := range backends {
		h.backends[flow{r.Frontend, r.Backend}] = r.Connects
	}
	foreign, err := lb.Foreign()
	if err != nil {
		unreadable("socklb", err)
	}
	for _, f := range foreign {
		d.Foreign = append(d.Foreign, api.ForeignProgram{Hook: f.Hook, ID: f.ID, Name: f.Name, Path: f.Cgroup, Order: string(f.Order)})
	}
	for _, u := range lb.Usage() {
		d.Maps = append(d.Maps, api.MapUsage{Map: u.Map, Used: u.Used, Limit: u.Limit, Setting: mapSettings[u.Map], Soft: softMaps[u.Map]})
	}
	for _, f := range lb.Features() {
		d.Features = append(d.Features, api.Feature(f))
	}
	for _, f := range probeDestroy() {
		d.Features = append(d.Features, api.Feature(f))
	}
}

// probeDestroy asks the kernel once: its answers do not change.
var probeDestroy = sync.OnceValue(sockdestroy.Probe)

// mapSettings are the configuration fields that size the maps.
var mapSettings = map[string]string{
	"services": "bpf.maxFrontends", "sets": "bpf.maxFrontends",
	"backends": "bpf.maxBackends", socklb.BackendsRun: "bpf.maxBackends",
	"sockets": "bpf.maxSockets", "sockets_more": "bpf.maxSockets",
	"affinities": "bpf.maxAffinity", "optouts": "bpf.maxOptOuts",
}

// softMaps may be full: affinities makes room by itself, and what finds no room in sockets goes to
// sockets_more.
var softMaps = map[string]bool{"affinities": true, "sockets": true}

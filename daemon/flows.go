package daemon

import (
	"context"
	"net/netip"
	"sync"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath/sockdestroy"
	"strait.io/strait/internal/l4"
)

// Flows lists who calls whom from this node: one service, or all for ""; nil before the first moment.
func (d *Daemon) Flows(ctx context.Context, service string) (*api.FlowList, error) {
	m := d.now()
	if m == nil {
		return nil, nil
	}
	seen, err := d.kernel.sockets.look(ctx, d.kernel)
	if err != nil {
		return nil, err
	}
	flows := d.viewer(m).flows(seen, clientsOf(d.kube.pods(), seen))
	return api.NewFlowList(d.viewpoint(m), flows, service, seen.partial), nil
}

// TrafficList sums up by service who calls whom from this node; nil before the first moment.
func (d *Daemon) TrafficList(ctx context.Context) (*api.TrafficList, error) {
	m := d.now()
	if m == nil {
		return nil, nil
	}
	seen, err := d.kernel.sockets.look(ctx, d.kernel)
	if err != nil {
		return nil, err
	}
	v := d.viewer(m)
	v.counted = d.kernel.counts()
	return api.NewTrafficList(d.viewpoint(m), v.traffic, v.flows(seen, clientsOf(d.kube.pods(), seen)), seen.partial), nil
}

// flows sums up sockets by client, frontend and backend, in no order.
func (v viewer) flows(seen seenSockets, clients clients) []api.Flow {
	type key struct {
		client   api.FlowClient
		frontend l4.Addr
		backend  netip.AddrPort
	}
	type sum struct {
		api.Flow
		rtts int // connections whose round-trip time is known
	}
	sums, once := map[key]*sum{}, make(map[sockdestroy.Record]bool, len(seen.records))
	frontends, backends := map[l4.Addr]bool{}, map[netip.Addr]bool{}
	for _, r := range seen.records {
		s, found := seen.found[r.Cookie]
		if once[r] || !found && seen.partial == "" { // a record that moves is listed twice
			continue
		}
		once[r] = true
		k := key{client: api.FlowClient{Cluster: string(v.self.Cluster), Node: string(v.self.Node)},
			frontend: l4.New(r.Frontend.Addr(), r.Frontend.Port(), r.Proto), backend: netip.AddrPortFrom(r.Backend.Addr().Unmap(), r.Backend.Port())}
		if found {
			k.client.Name, k.client.Kind = clients.of(s)
			k.client.Program = seen.programs[r.Cookie]
		}
		if sums[k] == nil {
			sums[k] = &sum{Flow: api.Flow{Client: k.client, Frontend: k.frontend, Backend: api.FlowBackend{Addr: k.backend}}}
		}
		sums[k].Add(countsOf(s))
		if s.TCP != nil && s.TCP.RTT > 0 {
			sums[k].RTT, sums[k].rtts = sums[k].RTT+milliseconds(s.TCP.RTT), sums[k].rtts+1
		}
		frontends[k.frontend], backends[k.backend.Addr()] = true, true
	}
	name := v.naming(frontends, backends)
	out := make([]api.Flow, 0, len(sums))
	for _, s := range sums {
		if s.rtts > 0 {
			s.RTT /= float64(s.rtts)
		}
		name(&s.Flow)
		out = append(out, s.Flow)
	}
	return out
}

// countsOf are the counts of one socket.
func countsOf(s sockdestroy.Socket) api.FlowCounts {
	out := api.FlowCounts{Open: 1}
	if s.TCP != nil {
		out.Sent, out.Received = &s.TCP.Sent, &s.TCP.Received
	}
	return out
}

// naming returns a function that fills in the service of a flow and what is known of its backend. It
// looks only at the services of the frontends.
func (v viewer) naming(frontends map[l4.Addr]bool, backends map[netip.Addr]bool) func(*api.Flow) {
	type service struct{ name, port string }
	services, known := map[l4.Addr]service{}, map[flow]api.FlowBackend{}
	add := func(name clustermesh.ServiceName, s interface {
		balanced
		Frontends() []plan.Frontend
	}) {
		used := false
		for addr, port := range s.Addrs() {
			if frontends[addr] {
				used, services[addr] = true, service{name.String(), port.Name}
			}
		}
		if !used {
			return
		}
		for _, f := range s.Frontends() {
			for _, x := range f.Choice.Verdicts {
				if backends[x.Addr.Addr()] {
					known[flow{f.Addr, x.Addr}] = api.FlowBackend{Addr: x.Addr, Cluster: string(x.Cluster), Node: string(x.Node), Pod: x.Pod, Tier: x.Tier.String()}
				}
			}
		}
	}
	for _, i := range v.result.Imports {
		add(i.Service, i)
	}
	for _, g := range v.result.Globals {
		add(g.Service, g)
	}
	places := sync.OnceValue(v.places) // it goes through all records
	return func(f *api.Flow) {
		s := services[f.Frontend]
		f.Service, f.Port = s.name, s.port
		if b, is := known[flow{f.Frontend, f.Backend.Addr}]; is {
			f.Backend = b
		} else if o, is := places()(f.Backend.Addr.Addr()); is {
			f.Backend.Cluster, f.Backend.Node = string(o.Cluster), string(o.Node)
		}
	}
}

// clients says who has a socket.
type clients struct {
	byUID  map[string]string
	byAddr map[netip.Addr]string
	// paths are those of cgroups, by ID.
	paths map[uint64]string
}

func clientsOf(pods kube.Pods, seen seenSockets) clients {
	c := clients{map[string]string{}, map[netip.Addr]string{}, seen.cgroups}
	for _, p := range pods.Named {
		name := p.Namespace + "/" + p.Name
		c.byUID[p.UID] = name
		for _, a := range p.Addresses {
			c.byAddr[a] = name
		}
	}
	return c
}

// of names the client that has a socket: its pod by cgroup or address, otherwise its cgroup, otherwise
// its address.
func (c clients) of(s sockdestroy.Socket) (name, kind string) {
	path := c.paths[s.Cgroup]
	if pod := c.byUID[podUID(path)]; pod != "" {
		return pod, api.ClientPod
	}
	addr := s.Local.Addr().Unmap()
	switch pod := c.byAddr[addr]; {
	case pod != "":
		return pod, api.ClientPod
	case path != "":
		return path, api.ClientCgroup
	case addr.IsValid() && !addr.IsUnspecified():
		return addr.String(), api.ClientAddress
	}
	return "", ""
}

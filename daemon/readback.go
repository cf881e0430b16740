package daemon

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/sockdestroy"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// The functions below read the kernel back for the API. They take no lock that a turn holds while
// it works. A part that is not open yet is simply absent; apply reports why.

func (k *kernel) opened() (*socklb.LB, *wireguard.Device) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lb, k.device
}

// summary returns what the kernel holds and can do, in numbers.
func (k *kernel) summary() (api.Datapath, []problem.Problem) {
	lb, device := k.opened()
	d := api.Datapath{
		Mesh: "off", Pins: k.config.BPF.Pins, Cgroup: k.config.BPF.Cgroup, Destroyed: k.stale.destroyed(),
	}
	switch {
	case device != nil:
		d.Mesh = string(device.Kind())
	case k.config.Mesh.on():
		d.Mesh = "down"
	}
	dropped := k.drops.counts()
	d.Dropped = api.Dropped{Untracked: dropped.Untracked, Refused: dropped.Refused}
	found := k.drops.problems()
	if lb == nil {
		return d, found
	}
	found = append(found, k.mended.problems()...)
	note := func(err error) {
		if err != nil {
			found = append(found, problem.Problem{Code: problem.MapsUnreadable, Object: "socklb", Message: "read back: " + err.Error()})
		}
	}
	d.Attached, d.Cgroup = true, lb.Cgroup()
	note(lb.Look(func(r *inspect.Reader) (err error) {
		d.Frontends, d.Backends, err = r.Size()
		return err
	}))
	note(lb.Look(func(r *inspect.Reader) error {
		t, err := r.Totals()
		d.Sockets = api.Sockets{Lost: t.Lost, Bound: t.Bound, Swept: k.swept.Load()}
		return err
	}))
	var err error
	d.Foreign, err = k.others(lb)
	note(err)
	for _, u := range lb.Usage() {
		u.Setting = mapSettings[u.Map]
		d.Maps = append(d.Maps, u)
	}
	d.Features = lb.Features()
	if k.config.BPF.destroySockets() {
		d.Features = slices.Concat(d.Features, probeDestroy())
	}
	return d, found
}

// counted returns what the load balancer holds and has counted. What cannot be read is absent;
// Status has the reason.
func (k *kernel) counted() counted {
	c := k.counts()
	if lb, _ := k.opened(); lb != nil {
		c.frontends, _ = lb.Frontends()
		all, _ := k.others(lb)
		c.ahead = datapath.Names(datapath.Ahead(all))
	}
	return c
}

// others returns the programs of other software on the load balancer's hooks.
func (k *kernel) others(lb *socklb.LB) ([]datapath.ForeignProgram, error) {
	return k.foreign.programs(time.Now(), func() ([]datapath.ForeignProgram, error) { return inspect.Foreign(lb.Pins(), lb.Cgroup()) })
}

// counts returns what counted does, without the frontends.
func (k *kernel) counts() counted {
	c := counted{services: map[l4.Addr]frontendCounts{}, backends: map[flow]uint64{}}
	lb, _ := k.opened()
	if lb == nil {
		return c
	}
	_ = lb.Look(func(r *inspect.Reader) error {
		rows, err := r.Services()
		if err != nil {
			return err
		}
		c.services = make(map[l4.Addr]frontendCounts, len(rows))
		for _, s := range rows {
			c.services[s.Addr] = frontendCounts{s.Connects, s.Refused}
		}
		return r.Connects(func(frontend l4.Addr, backend netip.AddrPort, n uint64) { c.backends[flow{frontend, backend}] = n })
	})
	return c
}

// tunnels returns the WireGuard peers by key.
func (k *kernel) tunnels() map[key.Public]wireguard.PeerStatus {
	_, device := k.opened()
	if device == nil {
		return nil
	}
	peers, err := device.Peers()
	if err != nil {
		k.log.Warn("cannot read the tunnels", "err", err)
	}
	out := make(map[key.Public]wireguard.PeerStatus, len(peers))
	for _, p := range peers {
		out[p.Key] = p
	}
	return out
}

// had returns the peers that the device has from this daemon's last life; nil if it cannot be read.
func (k *kernel) had() (out []plan.Had) {
	if !k.config.Mesh.on() {
		return nil
	}
	peers, err := wireguard.Peers(k.config.Mesh.Device)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.log.Warn("cannot read which tunnels there were", "err", err)
	}
	for _, p := range peers {
		out = append(out, plan.Had{Key: p.Key, Underlay: p.Underlay, AllowedIPs: p.AllowedIPs})
	}
	return out
}

// foreignAge is how long the list of other programs is cached: making it takes eight requests for
// each of the machine's cgroups.
const foreignAge = 5 * time.Second

// foreignErrorAge is how long a failure to list them is cached. It is short, because the mender may
// soon put back whatever was missing.
const foreignErrorAge = mendEvery

// foreign caches the list of other programs on the hooks.
type foreign struct {
	mu    sync.Mutex
	until time.Time
	found []datapath.ForeignProgram
	err   error
}

// programs returns what find last returned. It calls find at most once per foreignAge, or
// foreignErrorAge while find fails.
func (f *foreign) programs(now time.Time, find func() ([]datapath.ForeignProgram, error)) ([]datapath.ForeignProgram, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Before(f.until) {
		return f.found, f.err
	}
	f.found, f.err = find()
	f.until = now.Add(foreignAge)
	if f.err != nil {
		f.until = now.Add(foreignErrorAge)
	}
	return f.found, f.err
}

// probeDestroy asks the kernel once: its answers do not change.
var probeDestroy = sync.OnceValue(sockdestroy.Probe)

// mapSettings are the configuration fields that size the maps.
var mapSettings = map[string]string{
	"services": "bpf.maxFrontends", "sets": "bpf.maxFrontends",
	"backends": "bpf.maxBackends", inspect.BackendsRun: "bpf.maxBackends",
	"sockets": "bpf.maxSockets", "addresses": "bpf.maxFrontends",
	"affinities": "bpf.maxAffinity", "optouts": "bpf.maxOptOuts",
}

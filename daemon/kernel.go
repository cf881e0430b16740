package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/turn"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/masquerade"
	"strait.io/strait/datapath/route"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
)

// kernel applies a datapath.Desired, part by part, and opens each part when it is first needed: a part
// that cannot be opened is a Problem and is tried again, while the others work.
type kernel struct {
	config    Config
	log       *slog.Logger
	metrics   *api.Metrics
	publicKey key.Public
	router    *route.Router
	exemption *masquerade.Exemption
	stale     *stale
	optOuts   optOuts
	foreign   foreign

	mu     sync.Mutex // guards what follows against the API, which reads it
	lb     *socklb.LB
	device *wireguard.Device
	mtu    int
	// met are the peers that were greeted in this life; of the loop alone.
	met map[key.Public]bool
}

// newKernel reads or makes the WireGuard key; it opens nothing.
func newKernel(c Config, log *slog.Logger, m *api.Metrics) (*kernel, error) {
	k := &kernel{config: c, log: log, metrics: m}
	k.router = route.New(route.Config{
		Device: c.Mesh.Device, Table: c.Mesh.Table, Local: c.DNS.givenAddrs(), Log: log.With("part", "route"),
	})
	k.exemption = masquerade.New(masquerade.Config{Device: c.Mesh.Device, Log: log.With("part", "masquerade")})
	k.stale = newStale(k, c.BPF.DestroyTCP)
	if c.Mesh.on() {
		private, err := wireguard.LoadKey(k.keyFile())
		if err != nil {
			return nil, fmt.Errorf("WireGuard key: %w", err)
		}
		k.publicKey = private.Public()
	}
	return k, nil
}

func (k *kernel) keyFile() string { return filepath.Join(k.config.StateDir, "wireguard.key") }

// apply makes the kernel hold what is wanted, from the bottom up: device, peers, sources, routes, frontends; and
// only then, if it may prune, removes from the top down. An object that a part refuses is a Problem and stops nothing; a
// part that fails does not stop the next, but nothing is removed.
func (k *kernel) apply(ctx context.Context, want datapath.Desired, c turn.Caution) ([]clustermesh.Problem, error) {
	var problems []clustermesh.Problem
	var errs []error
	step := func(target string, f func() ([]clustermesh.Problem, error)) {
		start := time.Now()
		refused, err := f()
		k.metrics.Observe(target, time.Since(start), err)
		problems = append(problems, refused...)
		if err != nil {
			errs = append(errs, err)
			for _, e := range flatten(err) {
				problems = append(problems, clustermesh.Problem{Object: target, Message: e.Error()})
			}
		}
	}
	mesh := k.config.Mesh.on()
	if mesh {
		step("wireguard", func() ([]clustermesh.Problem, error) { return k.peers(ctx, want, false) })
	}
	step("masquerade", func() ([]clustermesh.Problem, error) { return k.exemption.Reconcile(want.Sources, false) })
	step("route", func() ([]clustermesh.Problem, error) { return k.router.Reconcile(want.Routes, false) })
	step("socklb", func() ([]clustermesh.Problem, error) { return k.frontends(ctx, want.Frontends, c) })
	if c == turn.Exact && len(errs) == 0 {
		step("sockdestroy", func() ([]clustermesh.Problem, error) { return nil, k.stale.pass(ctx, want) })
	}
	if c == turn.Exact && len(errs) == 0 {
		step("route", func() ([]clustermesh.Problem, error) { return k.router.Reconcile(want.Routes, true) })
		step("masquerade", func() ([]clustermesh.Problem, error) { return k.exemption.Reconcile(want.Sources, true) })
		if mesh {
			step("wireguard", func() ([]clustermesh.Problem, error) { return k.peers(ctx, want, true) })
		}
	}
	k.meet(ctx, want.Peers)
	return problems, errors.Join(errs...)
}

// meet greets the peers if some are new, last of all: the first connection need not wait for a handshake then, and
// who joins two clusters sees at once whether their tunnel stands.
func (k *kernel) meet(ctx context.Context, peers []datapath.Peer) {
	met := make(map[key.Public]bool, len(peers))
	strangers := false
	for _, p := range peers {
		met[p.Key] = true
		strangers = strangers || !k.met[p.Key]
	}
	if k.met = met; strangers {
		k.greet(ctx)
	}
}

func (k *kernel) peers(ctx context.Context, want datapath.Desired, prune bool) ([]clustermesh.Problem, error) {
	k.mu.Lock()
	device := k.device
	k.mu.Unlock()
	if device == nil {
		opened, err := wireguard.Open(ctx, k.wireguardConfig(want.Peers), k.router)
		if err != nil {
			return nil, k.config.Mesh.explain(err)
		}
		k.log.Info("WireGuard device is up", "device", k.config.Mesh.Device, "kind", opened.Kind())
		device = opened
		k.mu.Lock()
		k.device = device
		k.mu.Unlock()
	}
	var addr netip.Prefix
	if want.Sources.OnDevice {
		addr = netip.PrefixFrom(want.Sources.Node, want.Sources.Node.BitLen())
	}
	// The address is looked at in each turn: others may take it away.
	if mtu := k.tunnelMTU(want.Peers); mtu != k.mtu || addr.IsValid() {
		if err := k.router.SetUp(k.config.Mesh.Device, mtu, addr); err != nil {
			return nil, err
		}
		k.mtu = mtu
	}
	return device.Reconcile(want.Peers, prune)
}

// greetTimeout bounds how long a starting node waits for the peers that it knows.
const greetTimeout = time.Second

// greet makes sure that the peers known from disk answer, but does not wait for those that do not. A
// machine that was booted lost its sessions, and its peers do not know; what it publishes before they do
// draws traffic into the void.
func (k *kernel) greet(ctx context.Context) {
	k.mu.Lock()
	device := k.device
	k.mu.Unlock()
	if device == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	if err := device.Greet(ctx); err != nil {
		k.log.Warn("cannot greet the peers", "err", err)
	}
}

// explain names the setting where what it asks for cannot be had.
func (m MeshConfig) explain(err error) error {
	if m.Implementation == wireguard.Kernel && errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w, or set mesh.implementation to %s", err, wireguard.Userspace)
	}
	return err
}

func (k *kernel) wireguardConfig(peers []datapath.Peer) wireguard.Config {
	c := k.config
	w := wireguard.Config{
		Device: c.Mesh.Device, Port: c.Mesh.Port, MTU: k.tunnelMTU(peers), Mode: c.Mesh.Implementation,
		KeyFile: k.keyFile(), Log: k.log.With("part", "wireguard"),
	}
	if c.Mesh.Tunnel != TunnelExternal {
		w.TunnelCommand = []string{"/proc/self/exe", "tunnel"}
		w.TunnelLog = filepath.Join(c.StateDir, "tunnel.log")
	}
	return w
}

// tunnelMTU is the configured one, or what the narrowest underlay to a peer leaves.
func (k *kernel) tunnelMTU(peers []datapath.Peer) int {
	if k.config.Mesh.MTU != 0 {
		return k.config.Mesh.MTU
	}
	mtu := 1500
	for _, p := range peers {
		if m, err := k.router.UnderlayMTU(p.Underlay.Addr()); err == nil {
			mtu = min(mtu, m)
		}
	}
	return max(mtu-wireguard.Overhead, 1280)
}

func (k *kernel) frontends(ctx context.Context, want []datapath.Frontend, c turn.Caution) ([]clustermesh.Problem, error) {
	k.mu.Lock()
	lb := k.lb
	k.mu.Unlock()
	if lb == nil {
		cfg := k.config.BPF.socklb()
		cfg.Log = k.log.With("part", "socklb")
		opened, err := socklb.Open(cfg)
		if err != nil {
			return nil, err
		}
		if err := opened.SelfTest(ctx); errors.Is(err, socklb.ErrOutside) {
			k.log.Warn("hooks are attached, but this process is outside their cgroup and cannot test them", "cgroup", opened.Cgroup())
		} else if err != nil {
			return nil, errors.Join(fmt.Errorf("self-test: %w", err), opened.Close())
		}
		k.log.Info("hooks are attached", "cgroup", opened.Cgroup(), "pins", opened.Pins())
		lb = opened
		k.mu.Lock()
		k.lb = lb
		k.mu.Unlock()
	}
	if c == turn.GrowOnly {
		have, err := lb.Frontends()
		if err != nil {
			return nil, err
		}
		want = datapath.Grow(have, want)
	}
	return lb.Reconcile(want, c == turn.Exact)
}

// optOut leaves the connections of the pods with these UIDs alone. It reports whether to ask again soon.
func (k *kernel) optOut(uids []string) ([]clustermesh.Problem, bool) {
	k.mu.Lock()
	lb := k.lb
	k.mu.Unlock()
	if lb == nil {
		return nil, true
	}
	return k.optOuts.apply(lb, uids, time.Now())
}

// watch signals when somebody else changed links, routes or the table that keeps pods' addresses.
func (k *kernel) watch(ctx context.Context, disturbed chan<- struct{}) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return k.router.Watch(ctx, disturbed) })
	g.Go(func() error { return k.exemption.Watch(ctx, disturbed) })
	return g.Wait()
}

// close lets go of handles. Pins, device and routes stay.
func (k *kernel) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lb != nil {
		k.lb.Close()
	}
	if k.device != nil {
		k.device.Close()
	}
	k.stale.destroyer.Close()
}

// flatten splits joined errors, so that each becomes a Problem of its own.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}

// CleanUp removes every trace of strait from the kernel of this node: hooks, pins, device, routes,
// nft table. It leaves keys and state on disk.
func CleanUp(c Config) error {
	return errors.Join(
		socklb.CleanUp(c.BPF.socklb()),
		wireguard.CleanUp(wireguard.Config{Device: c.Mesh.Device}),
		route.CleanUp(route.Config{Device: c.Mesh.Device, Table: c.Mesh.Table}),
		masquerade.CleanUp(),
	)
}

// RemoveState removes what strait keeps on disk: its key, the last known records, the log of the tunnel's process, and
// the folder of its socket.
func RemoveState(c Config) error {
	var errs []error
	for _, dir := range []string{c.StateDir, c.RunDir} {
		if filepath.Dir(filepath.Dir(filepath.Clean(dir))) == filepath.Dir(filepath.Clean(dir)) {
			errs = append(errs, fmt.Errorf("remove %s: it is no folder of strait's own", dir)) // /, /var: somebody's mistake
			continue
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// MountBPFFS mounts a bpffs on a folder, unless one is there.
func MountBPFFS(dir string) error { return socklb.MountBPFFS(dir) }

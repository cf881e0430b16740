package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/daemon/metrics"
	"strait.io/strait/datapath/netfilter"
	"strait.io/strait/datapath/route"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/notify"
)

// kernel makes the kernel of this node hold what is wanted, part by part. It opens each part when
// it is first needed. A part that cannot be opened is a Problem and is retried, while the others
// work.
type kernel struct {
	stack      *stack
	config     Config
	log        *slog.Logger
	publicKey  key.Public
	router     *route.Router
	table      *netfilter.Table
	stale      *stale
	foreign    foreign
	mended     mended
	drops      drops
	sockets    sockets
	mesh       *tunnels      // nil where the mesh is off
	prober     *prober       // likewise
	handshakes notify.Signal // wakes the handshaker
	balancing  notify.Signal // wakes the sweeper when lb is open
	swept      atomic.Uint64 // sockets whose records the sweeper freed

	// mu guards the fields below against the API, which reads them. It is never held while lb or
	// device is used.
	mu     sync.Mutex
	lb     *socklb.LB
	device *wireguard.Device
}

// newKernel reads or creates the WireGuard key. It opens nothing.
func newKernel(c Config, log *slog.Logger, m *metrics.Metrics) (*kernel, error) {
	k := &kernel{config: c, log: log, handshakes: notify.New(), balancing: notify.New()}
	k.router = route.New(route.Config{
		Device: c.Mesh.Device, Table: c.Mesh.Table, Local: c.DNS.givenAddrs(), Log: log.With("part", "route"),
	})
	k.table = netfilter.New(netfilter.Config{Device: c.Mesh.Device, Log: log.With("part", "netfilter")})
	k.stale = newStale(k, c.BPF)
	parts := []part{netfilterTable{k.table}, routes{k}, frontends{k}, &optOuts{kernel: k}} // bottom up
	if c.BPF.destroySockets() {
		parts = append(parts, k.stale)
	}
	if c.Mesh.on() {
		private, err := wireguard.LoadKey(k.keyFile())
		if err != nil {
			return nil, fmt.Errorf("WireGuard key: %w", err)
		}
		k.publicKey = private.Public()
		k.mesh, k.prober = &tunnels{kernel: k}, newProber(k)
		parts = slices.Insert(parts, 0, part(k.mesh))
	} else {
		parts = slices.Insert(parts, 0, part(noTunnels{k}))
	}
	k.stack = newStack(m.Observe, parts...)
	return k, nil
}

func (k *kernel) keyFile() string { return k.config.tunnelKeyFile() }

func (c Config) tunnelKeyFile() string { return filepath.Join(c.StateDir, "wireguard.key") }

// watch marks the parts that another program disturbed and pokes disturbed, until ctx is done. It
// also runs the handshaker, the prober of tunnels, the mender, the counting of drops and, where it may
// look into pods, the sweeper.
func (k *kernel) watch(ctx context.Context, disturbed notify.Signal) error {
	lost, changed, silent := notify.New(), notify.New(), notify.New()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return k.router.Watch(ctx, lost) })
	g.Go(func() error { return k.table.Watch(ctx, changed) })
	g.Go(func() error { return k.handshaker(ctx) })
	g.Go(func() error { return k.askTunnel(ctx, silent) })
	g.Go(func() error { return k.mender(ctx) })
	g.Go(func() error { return k.countDrops(ctx) })
	if k.prober != nil {
		g.Go(func() error { return k.prober.run(ctx, disturbed) })
	}
	if k.config.BPF.destroySockets() {
		g.Go(func() error { return k.sweeper(ctx) })
	}
	g.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-lost: // a route, the device, or an address
				k.stack.mark(disturb, "wireguard", "route")
			case <-changed:
				k.stack.mark(disturb, "netfilter")
			case <-k.router.Underlay():
				k.stack.mark(suspect, "wireguard")
			case <-silent:
				k.stack.mark(suspect, "wireguard")
			}
			disturbed.Poke()
		}
	})
	return g.Wait()
}

// close releases handles. Pins, device and routes stay.
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

// CleanUp removes every trace of strait from the kernel of this node: hooks, pins, device, routes,
// nft table. It leaves keys and state on disk.
func CleanUp(c Config) error {
	return errors.Join(
		socklb.CleanUp(c.BPF.socklb()),
		wireguard.CleanUp(wireguard.Config{Device: c.Mesh.Device}),
		route.CleanUp(route.Config{Device: c.Mesh.Device, Table: c.Mesh.Table}),
		netfilter.CleanUp(),
	)
}

// RemoveState removes what strait keeps on disk: its key, the last known records, the log of the
// tunnel's process, and the folder of its socket.
func RemoveState(c Config) error {
	var errs []error
	for _, dir := range []string{c.StateDir, c.RunDir} {
		if filepath.Dir(filepath.Dir(filepath.Clean(dir))) == filepath.Dir(filepath.Clean(dir)) {
			// Such as / or /var: a mistake in the configuration.
			errs = append(errs, fmt.Errorf("remove %s: it is not a folder of strait's own", dir))
			continue
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// MountBPFFS mounts a bpffs on a folder, unless one is already mounted there.
func MountBPFFS(dir string) error { return socklb.MountBPFFS(dir) }

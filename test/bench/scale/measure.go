package scale

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/gossipkey"
)

// fewPeers is the number of peers at the beginning. readyCalls is the number of /readyz calls that
// are timed.
const (
	fewPeers   = 10
	readyCalls = 2000
)

// settled is how long there must be no writes before writing counts as finished.
const settled = 5 * time.Second

// within limits the whole measurement: a daemon that makes no progress is an error.
const within = 45 * time.Minute

// Inner is the measuring process.
func Inner() error {
	text, err := os.ReadFile(os.Getenv(role))
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	// Keep mounts in this namespace. This fails in a chroot whose / is not a mount point.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("make mounts private: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), within, fmt.Errorf("the measurement did not end within %s", within))
	defer cancel()
	m := &measurement{job: j, metrics: map[string]float64{}}
	if err := m.run(ctx); err != nil {
		return err
	}
	if text, err = json.Marshal(m.metrics); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(j.Dir, "metrics.json"), text, 0o600)
}

type measurement struct {
	job
	world   *world
	daemon  *daemon
	metrics map[string]float64
	keys    gossipkey.Ring // of the gossip
	log     *slog.Logger   // of the other nodes; nil for no log
	probes  *client
	// runs runs the gossip of another node. quick is the gossip of the quick node.
	runs  func(*gossip.Gossip)
	quick *gossip.Gossip
	// far is the gossip of the other cluster's leader.
	far *gossip.Gossip
}

func (m *measurement) run(ctx context.Context) (err error) {
	if m.world, err = newWorld(m.Kubeconfig, m.Services, m.Endpoints); err != nil {
		return err
	}
	key, err := gossipkey.Generate(rand.Reader)
	if err != nil {
		return err
	}
	m.keys = gossipkey.Ring{key}
	if m.daemon, err = newDaemon(m.job, m.keys); err != nil {
		return err
	}
	if err := routeRemote(); err != nil {
		return err
	}
	system, err := m.world.core.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read namespace kube-system: %w", err)
	}
	start := time.Now()
	if err := m.world.fill(ctx); err != nil {
		return err
	}
	say("created %d services with %d endpoints in the API server in %.0f s", m.Services, m.Services*m.Endpoints, time.Since(start).Seconds())
	g, gctx := errgroup.WithContext(ctx)
	others, stop := context.WithCancel(gctx)
	m.runs = func(peer *gossip.Gossip) { g.Go(func() error { return peer.Run(others) }) }
	g.Go(func() error {
		defer stop()
		if err := m.others(gctx, string(system.UID)); err != nil {
			return err
		}
		m.probes = &client{url: "http://" + metricsListen}
		g.Go(func() error { return m.probes.probe(others) })
		return m.lives(gctx)
	})
	return g.Wait()
}

// others starts the gossip of the other nodes: those of the cluster, and fewPeers nodes of the
// other cluster.
func (m *measurement) others(ctx context.Context, uid string) error {
	var err error
	if m.quick, err = m.neighbour(uid); err != nil {
		return err
	}
	first, err := m.remote(0, fewPeers)
	if err != nil {
		return err
	}
	m.far = first
	m.runs(m.quick)
	m.runs(first)
	return lead(ctx, first, m.Peers)
}

// morePeers adds the rest of the other cluster's nodes, and waits until straitd has all of their
// records.
func (m *measurement) morePeers(ctx context.Context) error {
	if m.Peers <= fewPeers {
		return nil
	}
	g, err := m.remote(fewPeers, m.Peers)
	if err != nil {
		return err
	}
	m.runs(g)
	return await(ctx, time.Second, func() (bool, error) {
		all, err := m.probes.metrics(ctx)
		// The two extra origins are the clusters' own records.
		return all["strait_origins"] >= float64(m.world.nodes()+1+m.Peers+1), err
	})
}

// lives runs the daemon twice: the first creates the imports, the second finds them.
func (m *measurement) lives(ctx context.Context) error {
	before, err := m.world.plain(ctx)
	if err != nil {
		return err
	}
	took, err := m.first(ctx)
	if err != nil {
		return fmt.Errorf("%w; %s", err, m.daemon.lastWords())
	}
	m.metrics["kube_first_sync_s"] = took
	if err := m.daemon.clean(); err != nil {
		return err
	}
	after, err := m.world.plain(ctx)
	if err != nil {
		return err
	}
	m.metrics["kube_services_alone_s"] = (before + after) / 2 * float64(m.Services)
	if took, err = m.second(ctx); err != nil {
		return fmt.Errorf("%w; %s", err, m.daemon.lastWords())
	}
	m.metrics["kube_sync_s"] = took
	if err := m.mirrors(ctx); err != nil {
		return fmt.Errorf("%w; %s", err, m.daemon.lastWords())
	}
	return m.daemon.stop()
}

// first runs the daemon that finds only Services and exports, and writes imports, derived Services
// and slices.
func (m *measurement) first(ctx context.Context) (took float64, err error) {
	before, err := m.world.writes(ctx)
	if err != nil {
		return 0, err
	}
	if took, err = m.sync(ctx); err != nil {
		return 0, err
	}
	after, err := m.written(ctx)
	if err != nil {
		return 0, err
	}
	m.metrics["kube_writes_per_new_import"] = float64(after-before) / float64(m.Services)
	m.metrics["kube_rss_peak_mb"], err = m.daemon.memory("VmHWM")
	say("the first daemon served everything after %.0f s; it wrote %d times", took, after-before)
	return took, err
}

// written waits until straitd has written everything and writes no more. It returns the total
// number of writes. A pause in writing is not enough: on a busy machine a single write can take
// that long.
func (m *measurement) written(ctx context.Context) (int, error) {
	for {
		n, err := m.world.rest(ctx, settled)
		if err != nil {
			return 0, err
		}
		all, err := m.probes.metrics(ctx)
		if err != nil || all["strait_imports_to_write"] == 0 {
			return n, err
		}
	}
}

// second runs a daemon that starts on a clean machine in a cluster that already has all objects.
func (m *measurement) second(ctx context.Context) (took float64, err error) {
	before, err := m.world.writes(ctx)
	if err != nil {
		return 0, err
	}
	if took, err = m.sync(ctx); err != nil {
		return 0, err
	}
	after, err := m.world.rest(ctx, 2*settled) // longer: it must be elected first
	if err != nil {
		return 0, err
	}
	m.metrics["kube_writes_after_restart"] = float64(after - before)
	say("the second daemon served everything after %.1f s; it wrote %d times", took, after-before)
	if err := m.changes(ctx); err != nil {
		return 0, err
	}
	if err := m.steady(ctx); err != nil {
		return 0, err
	}
	if m.metrics["kube_restart_rss_peak_mb"], err = m.daemon.memory("VmHWM"); err != nil {
		return 0, err
	}
	time.Sleep(m.Rest)
	m.metrics["kube_rss_mb"], err = m.daemon.memory("VmRSS")
	return took, err
}

// steady measures what a daemon at rest costs, first with few peers, then with all.
func (m *measurement) steady(ctx context.Context) (err error) {
	if err := m.turns(ctx, "_few_peers"); err != nil {
		return err
	}
	if err := m.morePeers(ctx); err != nil {
		return err
	}
	time.Sleep(m.Rest)
	if _, err := m.world.rest(ctx, settled); err != nil {
		return err
	}
	if err := m.turns(ctx, ""); err != nil {
		return err
	}
	m.metrics["readyz_us"], m.metrics["readyz_bytes"], err = m.probes.probes(ctx, readyCalls)
	return err
}

// sync starts the daemon and waits until the kernel holds every service with every endpoint.
func (m *measurement) sync(ctx context.Context) (seconds float64, err error) {
	start := time.Now()
	if err := m.daemon.start(); err != nil {
		return 0, err
	}
	said := start
	var took time.Duration
	err = await(ctx, 100*time.Millisecond, func() (bool, error) {
		time.Sleep(50 * took) // reading the maps takes processor time from straitd
		began := time.Now()
		frontends, backends, err := m.held()
		took = time.Since(began)
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			say("in the kernel: %d of %d services, %d of %d endpoints (%v)", frontends, m.Services, backends, m.Services*m.Endpoints, err)
		}
		// An error means that the maps do not exist yet.
		return err == nil && frontends == m.Services && backends == m.Services*m.Endpoints, nil
	})
	return time.Since(start).Seconds(), err
}

// held counts the frontends and backends in the kernel, except those of straitd's self-test.
func (m *measurement) held() (frontends, backends int, err error) {
	all, err := inspect.Read(m.daemon.pins)
	for _, f := range all {
		if !f.Addr.IP.IsLoopback() {
			frontends++
			backends += len(f.Backends)
		}
	}
	return frontends, backends, err
}

// changes measures how long it takes until an endpoint that becomes ready or not is in the kernel's
// map, and counts the leader's writes for it. The time starts with the API server's answer, which
// is when watches get the change.
func (m *measurement) changes(ctx context.Context) error {
	before, err := m.world.writes(ctx)
	if err != nil {
		return err
	}
	var took []float64
	for n := range m.Changes {
		ms, err := m.change(ctx, n%2 == 1, m.Services*m.Endpoints-1+n%2)
		if err != nil {
			return fmt.Errorf("change %d: %w", n, err)
		}
		took = append(took, ms)
	}
	after, err := m.world.rest(ctx, settled)
	if err != nil {
		return err
	}
	slices.Sort(took)
	m.metrics["kube_watch_to_map_ms"] = took[len(took)/2]
	m.metrics["kube_watch_to_map_max_ms"] = took[len(took)-1]
	// Each change is itself a write, by this program.
	m.metrics["kube_writes_per_change"] = float64(after-before-m.Changes) / float64(m.Changes)
	return nil
}

// change makes one endpoint ready or not, and waits until the kernel has want backends.
func (m *measurement) change(ctx context.Context, ready bool, want int) (ms float64, err error) {
	if err := m.world.ready(ctx, ready); err != nil {
		return 0, err
	}
	start := time.Now()
	err = m.backends(ctx, want)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	// Let the leader write, as it would between two changes of one service in practice.
	_, err = m.world.rest(ctx, time.Second)
	return float64(took.Microseconds()) / 1000, err
}

// await calls ask until it returns true or an error, or ctx ends.
func await(ctx context.Context, every time.Duration, ask func() (bool, error)) error {
	for {
		done, err := ask()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(every):
		}
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: kube: "+format+"\n", args...) }

// Package daemon is the composition root: the only package that connects the sources, the gossip,
// the plan and the kernel.
//
// Input is a Config; outputs are the kernel's state, DNS answers, the local API and metrics. The pure
// packages decide what to do, and the shells how to do it. What stays here are small pure functions
// that only one part of the kernel needs, such as the sizes of packets in mtu.go.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/daemon/api/server"
	"strait.io/strait/daemon/dns"
	"strait.io/strait/daemon/health"
	"strait.io/strait/daemon/history/ring"
	"strait.io/strait/daemon/logring"
	"strait.io/strait/daemon/metrics"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/reconcile"
	"strait.io/strait/internal/notify"
)

// Daemon is one node's strait. Make it with New, then call Run once.
type Daemon struct {
	config Config
	build  Build
	log    *slog.Logger
	lines  *logring.Ring
	keys   keys // of this cluster and this node

	source    source
	kube      apiServer
	files     files
	trust     trusted     // owned by the loop
	trustsAll atomic.Bool // trust.all, for other goroutines
	leading   leading     // owned by the loop
	// who and gossip are set by join. With an API server that is in Run, once this node's identity
	// is known.
	who     who
	gossip  replication
	kernel  *kernel
	dns     *dns.Server
	api     *server.Server
	metrics *metrics.Metrics
	history *ring.Ring
	pings   pings

	wake          notify.Signal   // asks for another turn
	asked         time.Time       // next scheduled turn; owned by the loop
	past          plan.Past       // of the last plan; owned by the loop
	unserved      health.Unserved // owned by the loop
	canaries      canaries        // owned by the loop
	firstTurnDone bool            // the first turn is over; owned by the loop
	born          time.Time       // when Run began

	current atomic.Pointer[moment]
}

// moment is a snapshot of what was known and decided in one turn. It is immutable once stored.
type moment struct {
	applied time.Time // zero until a plan was applied without error
	state   clustermesh.State
	result  plan.Result
	table   *dns.Table // nil while unknown
	// namespaces are the namespaces that table was made for.
	namespaces []string
	// own are the namespaces of which the cluster itself had objects then.
	own      []string
	waiting  []string
	problems []clustermesh.Problem // of source, plan and kernel; Status adds those of the servers
}

// Build says which straitd this is; an empty field is not known.
type Build = metrics.Build

// New checks the config and reads the keys and the last known state. It opens nothing.
func New(c Config, build Build, log *slog.Logger) (*Daemon, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("straitd must run as root: it attaches eBPF programs and configures the network; try sudo")
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	lines := logring.New()
	log = slog.New(lines.Handler(log.Handler()))
	wake := notify.New()
	d := &Daemon{config: c, build: build, log: log, lines: lines, metrics: metrics.New(build), pings: newPings(), wake: wake}
	if err := d.openFiles(wake); err != nil {
		return nil, err
	}
	err := privateDir(c.StateDir)
	if err != nil {
		return nil, fmt.Errorf("stateDir: %w", err)
	}
	if c.Authority.on() {
		if d.keys, err = loadKeys(c); err != nil {
			return nil, err
		}
	}
	if d.source, d.kube, err = openSource(c, wake, log); err != nil {
		return nil, err
	}
	if err := d.kube.start(d); err != nil {
		return nil, err
	}
	d.kernel, err = newKernel(c, log, d.metrics)
	if err != nil {
		return nil, err
	}
	d.history = newHistory(c, log)
	d.dns = dns.New(dnsConfig(c, log), d.table)
	d.api = server.New(server.Config{Socket: c.Socket(), View: c.View(), ViewGroup: c.ViewGroup, Metrics: c.Metrics.Listen.Addr, Scrape: d.metrics.Handler(), Peers: peers{d}, Log: log.With("part", "api")}, d)
	d.metrics.From(d.api, d)
	return d, nil
}

// join creates the gossip once this node's identity is known. It starts nothing.
func (d *Daemon) join(w who) error {
	d.who = w
	authority, err := d.authority(w.Cluster)
	if err != nil {
		return err
	}
	c := gossip.Config{
		Self:      d.self().Origin(),
		UID:       w.UID,
		Bind:      d.config.Gossip.Bind,
		Advertise: w.Advertise,
		Seeds:     d.config.Gossip.Seeds,
		Keys:      d.files.keys.Get(),
		StateDir:  d.config.StateDir,
		Authority: authority,
		Log:       d.log.With("part", "gossip"),
	}
	c.Attest, c.Objects, c.Answer = d.attest, d.objects, d.answer
	c.Lead, c.Token = d.kube.election(), d.kube.token(d.config.Authority.TokenFile)
	g, err := gossip.New(c)
	d.gossip = g
	return err
}

// Run works until ctx is done, then stops everything that it started. What the kernel holds stays,
// so traffic continues without the daemon.
func (d *Daemon) Run(ctx context.Context) error {
	// Listen first: the socket keeps a second daemon on this node from changing anything.
	if err := d.api.Listen(ctx); err != nil {
		return err
	}
	d.born = time.Now()
	d.log.Info("starting", "version", d.build.Version, "revision", d.build.Revision, "cluster", d.config.Cluster, "node", d.config.Node)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.source.Run(ctx) })
	g.Go(func() error { return d.files.run(ctx) })
	g.Go(func() error { return d.api.Run(ctx) })
	g.Go(func() error { return d.history.Run(ctx) })
	if len(d.config.DNS.Listen) > 0 {
		g.Go(func() error { return d.dns.Run(ctx) })
	}
	g.Go(func() error { return d.kernel.watch(ctx, d.wake) })
	g.Go(func() error {
		if err := d.kube.identify(ctx, d); err != nil {
			return err
		}
		g.Go(func() error { return d.kube.run(ctx, d.config.Authority.leads()) })
		g.Go(func() error { return d.gossip.Run(ctx) })
		triggers := append(d.kube.changed(), d.wake, d.source.Changed(), d.gossip.Changed())
		reconcile.Run(ctx, reconcile.Config{}, merge(ctx, triggers...), d.apply)
		return nil
	})
	err := g.Wait()
	d.kernel.close()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		d.log.Info("stopped; the kernel keeps what it holds")
		return nil
	}
	return err
}

// againIn schedules another turn after wait, unless one is already scheduled sooner. Without that
// check, turns that each schedule their own successor would multiply.
func (d *Daemon) againIn(wait time.Duration) {
	now := time.Now()
	if d.asked.After(now) && d.asked.Before(now.Add(wait)) {
		return
	}
	d.asked = now.Add(wait)
	time.AfterFunc(wait, d.wake.Poke)
}

// store makes m the current moment and logs which problems appeared and which were solved.
func (d *Daemon) store(m *moment) {
	m.problems = clustermesh.SortProblems(m.problems)
	old := d.current.Load()
	if m.applied.IsZero() && old != nil {
		m.applied = old.applied
	}
	d.current.Store(m)
	var before []clustermesh.Problem
	var heard clustermesh.ByOrigin[clustermesh.Contact]
	if old != nil {
		before, heard = old.problems, old.state.Contacts
	}
	for _, c := range clusterNews(heard, m.state.Contacts, d.self().Cluster) {
		d.log.Info(c.text, "cluster", c.cluster)
	}
	came, went := news(before, m.problems)
	for _, p := range came {
		d.log.Warn("problem", "code", p.Code, "what", p.String())
	}
	for _, p := range went {
		d.log.Info("problem solved", "code", p.Code, "what", p.String())
	}
	if (old == nil || old.applied.IsZero()) && !m.applied.IsZero() {
		d.log.Info("ready: the first plan is applied", "frontends", len(m.result.Desired.Frontends), "peers", len(m.result.Desired.Peers), "waiting", m.waiting)
	}
}

// news compares two lists of problems: came are only in now, went only in before.
func news(before, now []clustermesh.Problem) (came, went []clustermesh.Problem) {
	return without(now, before), without(before, now)
}

// without returns the elements of a that are not in b.
func without(a, b []clustermesh.Problem) (out []clustermesh.Problem) {
	in := make(map[clustermesh.Problem]bool, len(b))
	for _, p := range b {
		in[p] = true
	}
	for _, p := range a {
		if !in[p] {
			out = append(out, p)
		}
	}
	return out
}

func (d *Daemon) now() *moment { return d.current.Load() }

func (d *Daemon) self() plan.Self {
	return plan.Self{Cluster: d.who.Cluster, Node: clustermesh.NodeName(d.config.Node)}
}

func (d *Daemon) planConfig() plan.Config {
	return plan.Config{CIDRs: d.config.cidrs(), Barred: d.config.barred(), Mesh: d.config.Mesh.on(), Locality: d.config.Locality.plan()}
}

// merge combines several triggers into one.
func merge(ctx context.Context, ins ...<-chan struct{}) <-chan struct{} {
	out := notify.New()
	for _, in := range ins {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-in:
					out.Poke()
				}
			}
		}()
	}
	return out
}

package gossip

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/observe"
	"strait.io/strait/clustermesh/gossip/pool"
	"strait.io/strait/clustermesh/gossip/probe"
	"strait.io/strait/clustermesh/gossip/stream"
)

const (
	// beat is how often streams, probes, leadership and Problems are checked even without an event.
	beat = 200 * time.Millisecond
	// startGrace is how long a starting node waits to hear others before it probes nodes known from
	// disk, or leads its cluster.
	startGrace = 2 * time.Second
	// hintGrace is how long a starting node waits for hints to answer.
	hintGrace = 5 * time.Second
)

// Run takes part in gossip until ctx ends; then it returns nil. It returns an error if it cannot
// listen on its port. It does not announce that it leaves, because the node is not gone when its
// daemon stops. Call it only once.
func (g *Gossip) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() { g.save(ctx) }()
	defer wg.Wait()
	defer cancel()
	p, err := g.open()
	if err != nil {
		return err
	}
	defer p.Close()
	g.log.Info("gossip started", "bind", g.cfg.Bind, "advertise", g.cfg.Advertise, "member", g.self)
	wg.Go(func() { g.keep(ctx) })
	wg.Go(func() { g.streams.Run(ctx, p.Streams()) })
	wg.Go(func() { g.joinLoop(ctx, p) })
	if g.cfg.Authority != nil { // pins can come later
		wg.Go(func() { g.keepStated(ctx) })
	}
	g.loop(ctx, &wg, p)
	return nil
}

// open starts memberlist, with the keys that are in force.
func (g *Gossip) open() (*pool.Pool, error) {
	g.rekeying.Lock()
	defer g.rekeying.Unlock()
	p, err := pool.Open(pool.Config{
		Self: g.self, Bind: g.cfg.Bind, Advertise: g.cfg.Advertise, Keys: g.cfg.Keys, Timeout: stream.DialTimeout,
		Log: g.log, Admit: g.clusters.admit, Seats: g.seats, NoUDP: host{g}.noUDP, Pinged: g.pinged,
		Refused: g.strangers.refused, TLS: secure{g.streams},
	})
	g.pool = p
	return p, err
}

// loop handles events, and what is due with time, until ctx ends.
func (g *Gossip) loop(ctx context.Context, wg *sync.WaitGroup, p *pool.Pool) {
	started := time.Now()
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	nextTick := started
	g.setRunning(true, started)
	defer g.setRunning(false, started)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Ready():
		case <-g.events:
		case <-ticker.C:
		}
		now := time.Now()
		g.mu.Lock()
		g.members(p.Events(), now)
		g.look(started, now)
		if now.After(nextTick) {
			nextTick = now.Add(pause(time.Second))
			g.tick(rng)
		}
		g.mu.Unlock()
		g.askUnmet(ctx, wg.Go)
		if now.Sub(started) > startGrace {
			g.probeDue(ctx, wg.Go)
		}
	}
}

// tick does what is due about once a second. The lock is held.
func (g *Gossip) tick(rng *rand.Rand) {
	out := g.replica.Tick(rng)
	for _, o := range out.Changed {
		if _, held := g.replica.Record(o); !held {
			g.log.Info("node left its cluster", "node", o)
		}
	}
	g.apply(out)
	if g.replica.Nobody(g.everySeed) {
		g.changed.Poke()
	}
	g.measure(time.Now())
	g.checkClock(time.Now())
	g.renewStatement(time.Now())
	g.contacts.Forget(g.replica.Records())
	g.seats.know(g.cfg.Self, g.replica.Records())
	g.testify()
	g.reviewStatements(time.Now())
	if g.publishCluster() {
		g.changed.Poke()
	}
}

// measure looks at the distances of clusters. The lock is held.
func (g *Gossip) measure(now time.Time) {
	others := slices.DeleteFunc(g.contacts.Alive(), func(o clustermesh.Origin) bool { return o.Cluster == g.cfg.Self.Cluster })
	if !g.distances.Update(others, now) {
		return
	}
	steps := g.distances.Steps()
	g.log.Info("the distances of clusters changed", "steps", steps)
	if err := saveDistances(g.cfg.StateDir, steps); err != nil {
		g.log.Warn("cannot save the distances of clusters; the next life measures them for a minute", "error", err)
	}
	g.changed.Poke()
}

// pinged notes how long another cluster's node took to answer.
func (g *Gossip) pinged(m member.ID, at netip.Addr, rtt time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.Origin.Cluster != g.cfg.Self.Cluster && g.trusts(m.Origin, at) {
		g.distances.Ping(m.Origin, rtt, time.Now())
	}
}

// RTTs returns the round-trip times of other clusters' nodes, the shortest of the last pings.
func (g *Gossip) RTTs() map[clustermesh.Origin]time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.distances.RTTs()
}

// Limit returns the round-trip time at which a step of Distances begins. It is not known of a cluster
// that answers no pings.
func Limit(step uint32) (limit time.Duration, known bool) {
	if step >= observe.Unmeasured {
		return 0, false
	}
	return observe.Limit(step), true
}

// Distances returns how far away clusters are that are not among the nearest, in steps; see
// observe.Distances.
func (g *Gossip) Distances() map[clustermesh.ClusterName]uint32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.distances.Steps()
}

func (g *Gossip) setRunning(running bool, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = running
	g.elect(now, now)
}

// members applies memberlist's events, and updates the streams to the neighbours. The lock is held.
func (g *Gossip) members(events []pool.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	for _, e := range events {
		switch {
		case e.Owner != "":
			g.refuse(e.Member, e.Owner, e.Addr.String())
			continue
		case e.Alive:
			g.contacts.Join(e.Member.ID, e.Addr, now)
			g.solved("seed " + e.Addr.String())
			g.solved("key " + e.Addr.String()) // the daemon was restarted with the right key
		default:
			g.contacts.Leave(e.Member.ID, now)
		}
		g.log.Debug("member changed", "name", e.Member, "address", e.Addr, "alive", e.Alive)
	}
	g.regroup()
}

// regroup keeps streams to the neighbours among the members of now. The lock is held.
func (g *Gossip) regroup() {
	out := g.replica.SetMembers(g.contacts.Members())
	g.streams.Follow(g.replica.Neighbours()) // before apply, whose messages wait for new streams
	g.apply(out)
	g.touch()
	g.testify()
}

// look checks what can change with time alone: the leader, the owners of cluster names, the wait
// for hints, duplicates and Problems. The lock is held.
func (g *Gossip) look(started, now time.Time) {
	if g.contacts.Sweep(now) {
		g.regroup()
	}
	g.elect(started, now)
	if g.trust.Stale(now) || g.clusters.look(g.contacts.Alive(), now) {
		g.readmit()
	}
	if now.Sub(started) > hintGrace && g.seeds.Late() {
		g.changed.Poke()
	}
	for o, addrs := range g.contacts.Duplicates(now) {
		var texts []string
		for _, a := range addrs {
			texts = append(texts, a.String())
		}
		slices.Sort(texts)
		key, p := "duplicate "+o.String(), duplicateProblem(o, texts...)
		if _, held := g.replica.Record(o); held {
			g.problem(key, p, problemLife)
		} else {
			g.strange(key, p)
		}
	}
	g.reportStrangers(now)
	if g.problems.expire(now) {
		g.changed.Poke()
	}
}

// probeDue starts the probes that are due, and does not wait for them.
func (g *Gossip) probeDue(ctx context.Context, start func(func())) {
	g.mu.Lock()
	defer g.mu.Unlock()
	records := g.replica.Records()
	for _, o := range g.contacts.Due(records, time.Now()) {
		addrs := g.contacts.ProbeAddrs(o, records[o])
		start(func() {
			began := time.Now()
			if v := probe.TCP(ctx, addrs); ctx.Err() == nil {
				g.probed(o, v, began)
			}
		})
	}
}

func (g *Gossip) probed(o clustermesh.Origin, v observe.Verdict, began time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	if before, after := g.contacts.Probed(o, v, began, time.Now(), rng); after != before {
		g.log.Info("contact changed", "node", o, "from", before, "to", after)
		g.touch()
		// Not after every probe, because testify looks at all nodes. The tick calls it too, for
		// what changes by time alone.
		g.testify()
	}
}

// askUnmet asks the members that have not proven yet that they are there, and does not wait for
// them. If one answers, host.Admit notes it.
func (g *Gossip) askUnmet(ctx context.Context, start func(func())) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.contacts.Unmet(time.Now()) {
		addr := g.place(o, time.Now())
		start(func() {
			p, err := g.streams.Ask(ctx, addr)
			g.log.Debug("member asked", "node", o, "address", addr, "error", err)
			g.mu.Lock()
			defer g.mu.Unlock()
			if ctx.Err() == nil && (err != nil || p.Origin != o || !p.Believed) {
				g.dialled(o, addr, false)
			}
			g.contacts.Asked(o, time.Now(), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
		})
	}
}

// sign notes a sign of life of a node. The lock is held.
func (g *Gossip) sign(o clustermesh.Origin, note func(now time.Time)) {
	before := g.contacts.Contact(o)
	note(time.Now())
	if g.contacts.Contact(o) != before {
		g.touch()
		g.events.Poke() // the leader may have to give way
	}
}

// testify updates the claims from what is observed. The lock is held.
func (g *Gossip) testify() {
	if !g.witness.Update(g.contacts, g.replica.Records(), time.Now()) {
		return
	}
	g.log.Info("claims changed", "silent", g.witness.Silences())
	if g.publish() {
		g.changed.Poke()
	}
}

// pause returns d, randomly varied by ±50 %, so that nodes do not act in step.
func pause(d time.Duration) time.Duration { return d/2 + rand.N(d) }

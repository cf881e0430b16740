package gossip

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/observe"
	"strait.io/strait/clustermesh/gossip/pool"
	"strait.io/strait/clustermesh/gossip/probe"
	"strait.io/strait/clustermesh/gossip/stream"
)

// beat is how often streams, probes, leadership and Problems are checked even without an event.
const beat = 200 * time.Millisecond

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
		Log: g.log, Admit: g.admitName, Seats: g.seats, NoUDP: host{g}.noUDP, Pinged: g.pinged,
		Refused: g.strangers.refused, TLS: secure{g.streams}, Meter: g.meter,
	})
	g.pool = p
	return p, err
}

// loop handles events, and what is due with time, until ctx ends.
func (g *Gossip) loop(ctx context.Context, wg *sync.WaitGroup, p *pool.Pool) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	g.do(func(n *node.Node, now time.Time) { n.SetRunning(true, now) })
	defer g.do(func(n *node.Node, now time.Time) { n.SetRunning(false, now) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Ready():
		case <-g.beats:
		case <-ticker.C:
		}
		g.beat(p.Events())
		g.askUnmet(ctx, wg.Go)
		g.probe(ctx, wg.Go)
	}
}

// beat passes on what memberlist reports, and has the node do what is due.
func (g *Gossip) beat(events []pool.Event) {
	members := make([]node.MemberEvent, len(events))
	for i, e := range events {
		members[i] = node.MemberEvent(e)
	}
	g.do(func(n *node.Node, now time.Time) { n.Beat(members, g.strangers.problems(now), now) })
}

// probe starts the probes that are due, and does not wait for them.
func (g *Gossip) probe(ctx context.Context, start func(func())) {
	for _, p := range ask(g, (*node.Node).Probes) {
		start(func() {
			began := time.Now()
			if v := probe.TCP(ctx, p.Addrs); ctx.Err() == nil {
				g.do(func(n *node.Node, now time.Time) { n.Probed(p.Node, v, began, now) })
			}
		})
	}
}

// askUnmet asks the members that have not proven yet that they are there, and does not wait for
// them. If one answers, host.Admit notes it.
func (g *Gossip) askUnmet(ctx context.Context, start func(func())) {
	for _, p := range ask(g, (*node.Node).Unmet) {
		start(func() {
			peer, err := g.streams.Ask(ctx, p.At)
			g.log.Debug("member asked", "node", p.Node, "address", p.At, "err", err)
			proven := err == nil && peer.Origin == p.Node && peer.Trusted
			g.do(func(n *node.Node, now time.Time) { n.Asked(p, proven, ctx.Err() != nil, now) })
		})
	}
}

// pinged notes how long a node took to answer, and what its clock showed.
func (g *Gossip) pinged(m member.ID, at netip.Addr, rtt time.Duration, there time.Time) {
	g.do(func(n *node.Node, now time.Time) { n.Pinged(m, at, rtt, there, now) })
}

// Limit returns the round-trip time at which a step of Distances begins. It is not known of a cluster
// that answers no pings.
func Limit(step uint32) (limit time.Duration, known bool) {
	if step >= observe.Unmeasured {
		return 0, false
	}
	return observe.Limit(step), true
}

// pause returns d, randomly varied by ±50 %, so that nodes do not act in step.
func pause(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// admitName is pool.Config.Admit.
func (g *Gossip) admitName(p member.Peer) (owner string, ok bool) {
	return g.clusters.Admit(p.Origin.Cluster, p.UID, time.Now())
}

package gossip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/observe"
	"strait.io/strait/clustermesh/gossip/pool"
	"strait.io/strait/clustermesh/gossip/stream"
)

const (
	// rejoin is the pause between attempts to reach daemons that are not members: memberlist itself
	// never reconnects after a partition. firstJoin is the pause while there is no other member.
	rejoin    = 5 * time.Second
	firstJoin = time.Second
)

func splitSeed(s string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(s)
	n, bad := strconv.ParseUint(text, 10, 16)
	if err != nil || bad != nil || n == 0 || host == "" {
		return "", 0, fmt.Errorf("gossip: seed %q: want HOST:PORT", s)
	}
	return host, uint16(n), nil
}

// Seeds says where other daemons may be.
type Seeds struct {
	// Listed are "host:port" of any daemons of the clusterset. This node may be among them.
	Listed []string
	// Hints are addresses where daemons may be, such as those of the cluster's own nodes. They are
	// tried like seeds, but a hint that does not answer is not a Problem, and Synced waits for
	// hints only for a few seconds.
	Hints []netip.AddrPort
}

// SetSeeds replaces the seeds. Invalid ones are errors; the rest are used.
func (g *Gossip) SetSeeds(all Seeds) error {
	var errs []error
	var good []string
	for _, s := range all.Listed {
		if _, _, err := splitSeed(s); err != nil {
			errs = append(errs, err)
		} else if !slices.Contains(good, s) {
			good = append(good, s)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seeds.Set(good, all.Hints)
	return errors.Join(errs...)
}

// joinLoop joins seeds and lost nodes until ctx ends.
func (g *Gossip) joinLoop(ctx context.Context, p *pool.Pool) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for {
		targets, reached := g.targets(g.resolveSeeds(ctx, rng), rng)
		errs := make([]error, len(targets))
		var wg sync.WaitGroup
		for i, t := range targets {
			wg.Go(func() { errs[i] = g.join(ctx, p, t) })
		}
		wg.Wait()
		if ctx.Err() != nil {
			return
		}
		g.judgeSeeds(targets, errs, reached)
		every := rejoin
		g.mu.Lock()
		if len(g.contacts.Alive()) == 0 {
			every = firstJoin
		}
		g.mu.Unlock()
		if !sleep(ctx, pause(every)) {
			return
		}
	}
}

// resolveSeeds looks up the current addresses of the seeds, and adds a few hints.
func (g *Gossip) resolveSeeds(ctx context.Context, rng *rand.Rand) []member.Target {
	g.mu.Lock()
	seeds, out := g.seeds.Next(rng)
	g.mu.Unlock()
	for _, seed := range seeds {
		host, port, _ := splitSeed(seed)
		lookup, cancel := context.WithTimeout(ctx, stream.DialTimeout)
		addrs, err := net.DefaultResolver.LookupNetIP(lookup, "ip", host)
		cancel()
		if err != nil && ctx.Err() == nil {
			g.seedFailed(seed, err)
		}
		for _, a := range addrs {
			out = append(out, member.Target{Addr: netip.AddrPortFrom(a.Unmap(), port), Seed: seed})
		}
	}
	return out
}

// targets returns which addresses of seeds and known nodes to try now: those of nodes that are not
// alive, and of neighbours that may not have heard of this node. reached are the seeds that need no
// attempt.
func (g *Gossip) targets(seeds []member.Target, rng *rand.Rand) (out []member.Target, reached map[string]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seeds.Resolved(seeds) {
		g.changed.Poke()
	}
	alive := map[clustermesh.Origin]bool{g.cfg.Self: true}
	var live []netip.AddrPort
	neighbours := map[clustermesh.Origin]bool{}
	for _, o := range g.replica.Neighbours() {
		neighbours[o] = true
	}
	now := time.Now()
	for _, o := range g.contacts.Alive() {
		if neighbours[o] && g.contacts.OneSided(o, now) {
			continue
		}
		alive[o] = true
		// What is said of where it is does not spare a seed there the question who it is.
		if at := g.place(o, now); g.trusts(o, at.Addr()) {
			live = append(live, at)
		}
	}
	lost := map[clustermesh.ClusterName][]netip.AddrPort{}
	for o, rec := range g.replica.Records() {
		if alive[o] || rec.Content.Node == nil {
			continue
		}
		for _, a := range observe.ProbeAddrs(rec, g.contacts.Addr(o)) {
			if a.Addr() != rec.Content.Node.Inside {
				lost[o.Cluster] = append(lost[o.Cluster], a)
			}
		}
	}
	return g.seeds.Targets(seeds, slices.Collect(maps.Values(lost)), live, rng)
}

// join asks a target who it is, and then has memberlist join it. It asks over our own stream,
// because that distinguishes a different key, a name conflict and no answer, which memberlist does
// not.
func (g *Gossip) join(ctx context.Context, p *pool.Pool, t member.Target) error {
	peer, err := g.streams.Ask(ctx, t.Addr)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	g.met(t.Addr, peer, err)
	if err != nil || peer.ID == g.self.ID {
		return err
	}
	if err := p.Join(t.Addr); err != nil {
		g.log.Debug("join failed", "address", t.Addr, "error", err)
	}
	return nil
}

// met notes who answered at an address.
func (g *Gossip) met(addr netip.AddrPort, peer stream.Peer, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	where := addr.String()
	if errors.Is(err, stream.ErrWrongKey) {
		g.problem("key "+where, wrongKeyProblem(where), problemLife)
	}
	if err != nil {
		return
	}
	g.solved("key " + where)
	switch {
	case !peer.Believed:
	case peer.ID == g.self.ID:
		g.seeds.IsSelf(addr) // a seed that is this daemon, by another address
	case peer.Origin == g.cfg.Self:
		g.twin(where)
	}
}

// judgeSeeds reports the seeds that did not answer at any of their addresses. A seed that was
// refused (wrong key, other cluster) has a Problem of its own.
func (g *Gossip) judgeSeeds(targets []member.Target, errs []error, reached map[string]bool) {
	for i, t := range targets {
		if errs[i] == nil || errors.Is(errs[i], stream.ErrWrongKey) || errors.Is(errs[i], member.ErrOtherCluster) {
			reached[t.Seed] = true
		}
	}
	for i, t := range targets {
		if t.Seed != "" && !reached[t.Seed] {
			g.seedFailed(t.Seed, errs[i])
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.everySeed = g.seeds.Every(reached)
	for seed := range reached {
		g.solved("seed " + seed)
	}
}

func (g *Gossip) seedFailed(seed string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problem("seed "+seed, seedProblem(seed, err, len(g.contacts.Alive()) == 0), problemLife)
}

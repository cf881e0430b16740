package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
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

// Seeds are where other daemons may be.
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
	g.do(func(n *node.Node, _ time.Time) { n.SetSeeds(good, all.Hints) })
	return errors.Join(errs...)
}

// joinLoop joins seeds and lost nodes until ctx ends.
func (g *Gossip) joinLoop(ctx context.Context, p *pool.Pool) {
	for {
		seeds := g.resolveSeeds(ctx)
		var targets []member.Target
		var reached map[string]bool
		g.do(func(n *node.Node, now time.Time) { targets, reached = n.Targets(seeds, now) })
		errs := make([]error, len(targets))
		var wg sync.WaitGroup
		for i, t := range targets {
			wg.Go(func() { errs[i] = g.join(ctx, p, t) })
		}
		wg.Wait()
		if ctx.Err() != nil {
			return
		}
		every := rejoin
		g.do(func(n *node.Node, now time.Time) {
			n.EndRound(targets, errs, reached, now)
			if n.Alone() {
				every = firstJoin
			}
		})
		if !sleep(ctx, pause(every)) {
			return
		}
	}
}

// resolveSeeds looks up the current addresses of the seeds, and adds a few hints.
func (g *Gossip) resolveSeeds(ctx context.Context) (out []member.Target) {
	var seeds []string
	g.do(func(n *node.Node, _ time.Time) { seeds, out = n.Seeds() })
	for _, seed := range seeds {
		host, port, _ := splitSeed(seed)
		lookup, cancel := context.WithTimeout(ctx, stream.DialTimeout)
		addrs, err := net.DefaultResolver.LookupNetIP(lookup, "ip", host)
		cancel()
		if err != nil && ctx.Err() == nil {
			g.do(func(n *node.Node, now time.Time) { n.SeedFailed(seed, err, now) })
		}
		for _, a := range addrs {
			out = append(out, member.Target{Addr: netip.AddrPortFrom(a.Unmap(), port), Seed: seed})
		}
	}
	return out
}

// join asks a target who it is, and then has memberlist join it. It asks over our own stream,
// because that distinguishes a different key, a name conflict and no answer, which memberlist does
// not.
func (g *Gossip) join(ctx context.Context, p *pool.Pool, t member.Target) error {
	peer, err := g.streams.Ask(ctx, t.Addr)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	g.do(func(n *node.Node, now time.Time) { n.Tried(t.Addr, peer.Peer, peer.Trusted, err, now) })
	if err != nil || peer.ID == g.self.ID {
		return err
	}
	if err := p.Join(t.Addr); err != nil {
		g.log.Debug("join failed", "address", t.Addr, "err", err)
	}
	return nil
}

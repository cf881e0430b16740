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
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh"
)

const (
	// rejoin is the pause between attempts to reach those that are no members; memberlist itself never
	// calls again after a partition. firstJoin is the pause while there is no member at all.
	rejoin    = 5 * time.Second
	firstJoin = time.Second
	// hintGrace is how long a starting node counts on hints.
	hintGrace = 5 * time.Second
	// maxTargets bounds the attempts of one round.
	maxTargets = 8
	maxHints   = 4
)

func checkSeed(s string) error {
	host, port, err := net.SplitHostPort(s)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
		return fmt.Errorf("gossip: seed %q: want HOST:PORT", s)
	}
	return nil
}

// SetSeeds replaces the seeds. Hints are addresses where daemons may be, such as those of the cluster's own
// nodes: they are tried like seeds, but nobody complains of those that do not answer, and nobody waits for
// them for long. A seed that is none is an error, and the others count.
func (g *Gossip) SetSeeds(seeds []string, hints []netip.AddrPort) error {
	var errs []error
	var good []string
	for _, s := range seeds {
		if err := checkSeed(s); err != nil {
			errs = append(errs, err)
		} else if !slices.Contains(good, s) {
			good = append(good, s)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(good, func(s string) bool { return !slices.Contains(g.seeds, s) }) {
		g.seedsAway = true // until they turn out to be ourselves
	}
	g.seeds, g.hints = good, slices.Clone(hints)
	g.awaitHints = !g.hintsDone && slices.ContainsFunc(hints, func(a netip.AddrPort) bool { return !g.selfAddrs[a] })
	return errors.Join(errs...)
}

// target is an address that may be a daemon that is no member yet.
type target struct {
	addr netip.AddrPort
	seed string // as configured; empty if it is a hint or comes from a record
}

// joinLoop joins seeds and lost nodes, for ever.
func (g *Gossip) joinLoop(ctx context.Context, list *memberlist.Memberlist) {
	for {
		targets, reached := g.targets(g.resolveSeeds(ctx))
		errs := make([]error, len(targets))
		var wg sync.WaitGroup
		for i, t := range targets {
			wg.Go(func() { errs[i] = g.join(ctx, list, t) })
		}
		wg.Wait()
		if ctx.Err() != nil {
			return
		}
		g.judgeSeeds(targets, errs, reached)
		g.mu.Lock()
		pause := rejoin
		if len(g.contacts.alive()) == 0 {
			pause = firstJoin
		}
		g.mu.Unlock()
		if !sleep(ctx, pause/2+rand.N(pause)) {
			return
		}
	}
}

// resolveSeeds looks the seeds up anew: names may come to mean others.
func (g *Gossip) resolveSeeds(ctx context.Context) []target {
	g.mu.Lock()
	seeds, hints := g.seeds, g.hints
	g.mu.Unlock()
	var out []target
	for _, i := range rand.Perm(len(hints))[:min(len(hints), maxHints)] {
		out = append(out, target{addr: hints[i]}) // a few, so that seeds have their turn
	}
	for _, seed := range seeds {
		host, portText, _ := net.SplitHostPort(seed)
		port, _ := strconv.ParseUint(portText, 10, 16)
		lookup, cancel := context.WithTimeout(ctx, dialTimeout)
		addrs, err := net.DefaultResolver.LookupNetIP(lookup, "ip", host)
		cancel()
		if err != nil && ctx.Err() == nil {
			g.seedFailed(seed, err)
		}
		for _, a := range addrs {
			out = append(out, target{netip.AddrPortFrom(a.Unmap(), uint16(port)), seed})
		}
	}
	return out
}

// targets are the seeds and the nodes known that are no live members, a random few of them. Reached are
// the seeds that need no attempt.
func (g *Gossip) targets(seeds []target) (out []target, reached map[string]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	skip := maps.Clone(g.selfAddrs)
	alive := map[clustermesh.Origin]bool{g.cfg.Self: true}
	for _, o := range g.contacts.alive() {
		alive[o] = true
		skip[g.contacts.memberAddr(o)] = true
	}
	g.countSeeds(seeds)
	reached = map[string]bool{}
	tried := map[netip.AddrPort]bool{}
	add := func(t target) {
		if skip[t.addr] {
			reached[t.seed] = true
		} else if !tried[t.addr] {
			tried[t.addr] = true
			out = append(out, t)
		}
	}
	for _, t := range seeds {
		add(t)
	}
	for o, rec := range g.replica.Records() {
		if alive[o] || rec.Content.Node == nil {
			continue
		}
		for _, a := range probeAddrs(rec, g.contacts.memberAddr(o)) {
			if a.Addr() != rec.Content.Node.Inside {
				add(target{addr: a})
			}
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(len(out), maxTargets)], reached
}

// countSeeds notes whether any seed is, or may yet turn out to be, another daemon. The lock is held.
func (g *Gossip) countSeeds(resolved []target) {
	self := map[string]bool{}
	for _, t := range resolved {
		is, known := self[t.seed]
		self[t.seed] = g.selfAddrs[t.addr] && (is || !known)
	}
	away := slices.ContainsFunc(g.seeds, func(s string) bool { return !self[s] })
	if away != g.seedsAway {
		g.seedsAway = away
		poke(g.changed)
	}
}

// join asks a target who it is, over our own stream, since its answer is clearer than memberlist's: it
// tells another key from another name from nobody there. Then memberlist joins it.
func (g *Gossip) join(ctx context.Context, members *memberlist.Memberlist, t target) error {
	conn, peer, err := g.dial(ctx, t.addr.String())
	if conn != nil {
		conn.Close()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	where := t.addr.String()
	g.met(t.addr, peer.member, err)
	if err != nil || peer.member == (member{g.cfg.Self, g.boot}) {
		return err
	}
	if _, err := members.Join([]string{where}); err != nil {
		g.log.Debug("join", "address", where, "error", err)
	}
	return nil
}

// met notes who answered at an address.
func (g *Gossip) met(addr netip.AddrPort, peer member, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	where := addr.String()
	if errors.Is(err, errWrongKey) {
		g.problem("key "+where, wrongKeyProblem(where), problemLife)
	}
	if err != nil {
		return
	}
	g.solved("key " + where)
	switch {
	case peer == (member{g.cfg.Self, g.boot}):
		g.selfAddrs[addr] = true // a seed that is ourselves, by another address
	case peer.origin == g.cfg.Self:
		g.problem("duplicate "+g.cfg.Self.String(), duplicateProblem(g.cfg.Self, g.cfg.Advertise.String(), where), problemLife)
	}
}

// judgeSeeds reports the seeds of which no address answered. A seed that was refused has its own report.
func (g *Gossip) judgeSeeds(targets []target, errs []error, reached map[string]bool) {
	for i, t := range targets {
		if errs[i] == nil || errors.Is(errs[i], errWrongKey) || errors.Is(errs[i], errOtherCluster) {
			reached[t.seed] = true
		}
	}
	for i, t := range targets {
		if t.seed != "" && !reached[t.seed] {
			g.seedFailed(t.seed, errs[i])
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for seed := range reached {
		g.solved("seed " + seed)
	}
}

func (g *Gossip) seedFailed(seed string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problem("seed "+seed, seedProblem(seed, err, len(g.contacts.alive()) == 0), problemLife)
}

func list(names []string) string { return strings.Join(names, ", ") }

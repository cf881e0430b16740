package gossip

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

// beat is how often streams, probes, leadership and problems are looked at without a reason.
const beat = 200 * time.Millisecond

// Run takes part in gossip until ctx ends. It returns nil then, and an error if the port cannot be had.
// It does not say goodbye: a daemon that stops is not a node that is gone. It can be called once.
func (g *Gossip) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer g.save()
	defer wg.Wait()
	defer cancel()
	logs := &memberLog{log: g.log, wrongKey: g.wrongKey, noUDP: g.noUDP}
	t, err := listen(g.cfg.Bind, logs.logger(), func(c net.Conn) {
		wg.Go(func() { g.accept(ctx, c) })
	})
	if err != nil {
		return err
	}
	members, err := memberlist.Create(g.memberConfig(t, logs))
	if err != nil {
		_ = t.Shutdown()
		return fmt.Errorf("gossip: start membership: %w", err)
	}
	defer func() { _ = members.Shutdown() }()
	g.log.Info("gossip", "bind", g.cfg.Bind, "advertise", g.cfg.Advertise, "member", member{g.cfg.Self, g.boot})
	wg.Go(func() { g.keep(ctx) })
	wg.Go(func() { g.joinLoop(ctx, members) })
	g.loop(ctx, &wg)
	return nil
}

// memberConfig sets memberlist up for a LAN of up to some hundred nodes: a death is decided in 2 to 5 s.
func (g *Gossip) memberConfig(t *transport, logs *memberLog) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = member{g.cfg.Self, g.boot}.String()
	c.Transport = t
	c.BindAddr, c.BindPort = g.cfg.Bind.Addr().String(), int(g.cfg.Bind.Port())
	c.AdvertiseAddr, c.AdvertisePort = g.cfg.Advertise.Addr().String(), int(g.cfg.Advertise.Port())
	c.Label = "strait"
	c.SecretKey = g.cfg.Key
	c.EnableCompression = false
	c.Logger, c.LogOutput = logs.logger(), nil
	c.TCPTimeout = dialTimeout
	c.ProbeInterval, c.ProbeTimeout = 500*time.Millisecond, 200*time.Millisecond
	c.IndirectChecks = 3
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 3, 3
	c.GossipInterval, c.GossipNodes = 100*time.Millisecond, 4
	c.RetransmitMult = 4
	c.PushPullInterval = 15 * time.Second
	c.GossipToTheDeadTime = 60 * time.Second
	c.DeadNodeReclaimTime = 30 * time.Second
	c.HandoffQueueDepth = 8192
	d := delegate{&g.inbox, g.uids, g.cfg.UID}
	c.Events, c.Alive, c.Delegate = d, d, d
	return c
}

// loop reacts to events and to time until ctx ends.
func (g *Gossip) loop(ctx context.Context, wg *sync.WaitGroup) {
	started := time.Now()
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	slots := make(chan struct{}, maxProbing)
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	nextTick := started
	g.setRunning(true, started)
	defer g.setRunning(false, started)
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.inbox.ready:
		case <-ticker.C:
		}
		now := time.Now()
		g.mu.Lock()
		g.members(ctx, wg, now)
		g.look(started, now)
		if g.uids.anew() && g.replica.Purge() {
			g.touch()
			poke(g.dirty)
		}
		if now.After(nextTick) {
			nextTick = now.Add(jitter(time.Second, rng))
			g.tick(rng)
		}
		g.mu.Unlock()
		if now.Sub(started) > startGrace {
			g.probeDue(ctx, slots, wg.Go)
		}
	}
}

// tick is what happens about once a second. The lock is held.
func (g *Gossip) tick(rng *rand.Rand) {
	out := g.replica.Tick(rng)
	for _, o := range out.Changed {
		if _, held := g.replica.Record(o); !held {
			g.log.Info("node left its cluster", "node", o)
		}
	}
	g.apply(out)
	g.contacts.forget(g.replica.Records())
	g.testify()
	if g.publishCluster() {
		poke(g.changed)
	}
}

func (g *Gossip) setRunning(running bool, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = running
	g.elect(now, now)
}

// members takes in memberlist's events and keeps a stream to each neighbour. The lock is held.
func (g *Gossip) members(ctx context.Context, wg *sync.WaitGroup, now time.Time) {
	events := g.inbox.take()
	if len(events) == 0 {
		return
	}
	for _, e := range events {
		if e.refused != nil {
			g.refuse(peer{e.member, e.refused.uid}, e.refused.owner, e.addr.String())
			continue
		}
		if e.alive {
			g.contacts.join(e.member, e.addr, now)
			g.solved("seed " + e.addr.String())
			g.solved("key " + e.addr.String()) // restarted with the right one
		} else {
			g.contacts.leave(e.member, now)
		}
		g.log.Debug("member", "name", e.member, "address", e.addr, "alive", e.alive)
	}
	out := g.replica.SetMembers(g.contacts.alive())
	wanted := map[clustermesh.Origin]bool{}
	for _, p := range g.replica.Neighbours() {
		wanted[p] = true
		if g.senders[p] == nil {
			sendCtx, cancel := context.WithCancel(ctx)
			s := newSender(p, cancel)
			g.senders[p] = s
			wg.Go(func() { g.send(sendCtx, s) })
		}
	}
	for p, s := range g.senders {
		if !wanted[p] {
			s.cancel()
			delete(g.senders, p)
		}
	}
	g.apply(out)
	g.touch()
	g.testify()
}

// look draws conclusions from the time that has passed. The lock is held.
func (g *Gossip) look(started, now time.Time) {
	g.elect(started, now)
	for _, o := range g.contacts.alive() {
		g.uids.heard(o.Cluster, now)
	}
	if g.awaitHints && now.Sub(started) > hintGrace {
		g.awaitHints, g.hintsDone = false, true
		poke(g.changed)
	}
	for o, addrs := range g.contacts.duplicates(now) {
		var texts []string
		for _, a := range addrs {
			texts = append(texts, a.String())
		}
		g.problem("duplicate "+o.String(), duplicateProblem(o, sorted(texts)...), problemLife)
	}
	if g.problems.expire(now) {
		poke(g.changed)
	}
}

func (g *Gossip) wrongKey(addr string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problem("key "+addr, wrongKeyProblem(addr), problemLife)
}

// admit refuses a peer at an address whose cluster has the name of another.
func (g *Gossip) admit(p peer, addr string) error {
	owner, ok := g.uids.admit(p.origin.Cluster, p.uid, time.Now())
	if ok {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse(p, owner, addr)
	return errOtherCluster
}

// admitRecord refuses a record that a peer holds of another cluster with a known name. The lock is held, or nothing runs.
func (g *Gossip) admitRecord(by replica.Peer, r clustermesh.Record) (clustermesh.Problem, bool) {
	owner, ok := g.uids.belongs(r.Origin.Cluster, r.UID)
	if ok {
		return clustermesh.Problem{}, true
	}
	return passedOnProblem(r.Origin.Cluster, owner, r.UID, by), false
}

// refuse reports two clusters of one name. The lock is held.
func (g *Gossip) refuse(p peer, owner, addr string) {
	problem := clusterProblem(p.origin.Cluster, owner, p.uid, addr, p.origin.Cluster == g.cfg.Self.Cluster)
	// Of several addresses the first is shown, but one that can be dialled rather than where a stream came from.
	seen, dialled := "cluster stream "+string(p.origin.Cluster)+" "+p.uid, "cluster "+string(p.origin.Cluster)+" "+p.uid
	key := dialled
	if _, err := netip.ParseAddrPort(addr); err != nil && !g.problems.has(dialled) {
		key = seen
	} else {
		g.solved(seen)
	}
	if g.problems.has(key) {
		problem = g.problems[key].problem
	}
	g.problem(key, problem, problemLife)
}

func (g *Gossip) noUDP(peer string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problem("udp "+peer, udpProblem(peer), problemLife)
}

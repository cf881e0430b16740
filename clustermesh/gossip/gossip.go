package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/meter"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/pool"
	"strait.io/strait/clustermesh/gossip/statedir"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/clustermesh/trust"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/notify"
)

// Config is which node a Gossip works for, and where.
type Config struct {
	// Self is this node.
	Self clustermesh.Origin
	// Bind is the address and port that memberlist (UDP, TCP) and record streams (TCP) share.
	Bind netip.AddrPort
	// Advertise is the address that others dial. Zero means Bind, which must then be a specific
	// address.
	Advertise netip.AddrPort
	// Seeds are "host:port" of any daemons of the clusterset. This node may be among them. See
	// SetSeeds.
	Seeds []string
	// Keys are the gossip keys that all daemons of the clusterset share; see Rekey.
	Keys gossipkey.Ring
	// UID distinguishes this cluster from another that uses its name; empty if there is none.
	UID string
	// Lead, if not nil, reports whether this node writes the cluster's record, and since when it
	// leads, in Unix milliseconds. That time is the epoch of what it writes. Lead must not block.
	// If it is nil, the live member of the cluster with the lowest name leads.
	Lead func() (is bool, since uint64)
	// StateDir holds the state between lives of the daemon; if empty, nothing is stored.
	StateDir string
	// Authority signs what this node writes, and decides what is believed of others. Nil signs nothing
	// and believes everybody who has the key.
	Authority *Authority
	// Attest returns an error unless it was a node itself that requested a statement about it. It is called
	// only on a machine that has the root, and only with requests that the owner of the node key signed. If
	// it is nil, this machine signs only for itself.
	Attest func(context.Context, authority.Request) error
	// Objects returns what the objects of this cluster list of its nodes, and whether that is known yet: only
	// what agrees with it is stated, of this node too. Nil states of each node what it requests.
	Objects func() (authority.Objects, bool)
	// Token returns what proves to Attest which node requests it. Nil if nothing does.
	Token func() (string, error)
	// Answer answers a query of another node of this cluster, which comes on a connection; see Query. It
	// returns when the answer is sent or the connection broke. If it is nil, this daemon neither answers
	// queries nor sends any.
	Answer func(net.Conn)
	// Log may be nil.
	Log *slog.Logger

	// topology replaces topology.FullMesh, for tests.
	topology topology.Topology
	// oneWay is stream.Services.OneWay, for tests.
	oneWay bool
	// clock replaces time.Now where statements about other nodes are signed, for tests.
	clock func() time.Time
}

// Authority is with which keys this node signs, and whom it believes.
type Authority = trust.Config

// Trust is whom a node believes, and why.
type Trust = trust.Summary

// Gossip is the clusterset as this node hears it. It owns the lock, the clock, sockets, goroutines and files
// of a node.Node, which decides. All methods are safe for concurrent use.
type Gossip struct {
	cfg       Config
	self      member.Peer // this life of the daemon
	log       *slog.Logger
	streams   *stream.Streams
	clusters  *clusters
	seats     *seats
	strangers *strangers
	meter     *meter.Meter
	attests   attests
	changed   notify.Signal
	dirty     notify.Signal
	beats     notify.Signal // wakes the loop
	decoding  sync.Mutex    // held while a large message is decoded

	rekeying sync.Mutex // held while cfg.Keys is read or changed
	pool     *pool.Pool // nil before Run

	records *statedir.Records // used by load, and then by save; nil without a state directory

	mu      sync.Mutex
	node    *node.Node
	unsaved origins // whose records changed since they were saved
}

// New checks the configuration and loads the saved state. It opens no sockets and starts nothing. A
// corrupt state file is set aside and becomes a Problem.
func New(cfg Config) (*Gossip, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if !cfg.Advertise.IsValid() {
		cfg.Advertise = cfg.Bind
	}
	g := &Gossip{
		cfg:       cfg,
		log:       cfg.Log,
		changed:   notify.New(),
		dirty:     notify.New(),
		beats:     notify.New(),
		strangers: newStrangers(),
		meter:     &meter.Meter{},
		attests:   newAttests(),
		seats:     newSeats(),
		unsaved:   origins{},
	}
	saved, problems := g.load()
	g.node = node.New(node.Config{
		Self: cfg.Self, UID: cfg.UID, Bind: cfg.Bind, Advertise: cfg.Advertise, Seeds: cfg.Seeds, Lead: cfg.Lead,
		Authority: cfg.Authority, Objects: cfg.Objects != nil, Proves: g.proves(), Topology: cfg.topology,
		Owners: g.clusters, Room: g.seats,
		Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Measure: measure,
	}, saved, time.Now())
	g.self = g.node.Self()
	var err error
	if g.streams, err = stream.New(g.self, cfg.Keys, g.credentials(), host{g}, stream.Services{Signer: g.signer(), Answerer: g.answerer(), Meter: g.meter, OneWay: cfg.oneWay}, g.log); err != nil {
		return g, err
	}
	g.do(func(n *node.Node, now time.Time) {
		for key, err := range problems {
			n.Report(key, stateProblem(err), 0, now)
		}
	})
	return g, nil
}

// measure returns how long work took.
func measure(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}

// do has the node handle an event, and carries out what it decides.
func (g *Gossip) do(event func(n *node.Node, now time.Time)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	event(g.node, time.Now())
	g.act(g.node.Take())
}

// ask returns an answer of the node.
func ask[T any](g *Gossip, question func(n *node.Node, now time.Time) T) (answer T) {
	g.do(func(n *node.Node, now time.Time) { answer = question(n, now) })
	return answer
}

// act carries out what the node decided. It never blocks, because the lock is held, so that messages leave
// in the order of the events.
func (g *Gossip) act(a node.Actions) {
	for _, l := range a.Log {
		g.log.Log(context.Background(), slog.Level(l.Level), l.Message, l.Args...)
	}
	if len(a.Neighbours) > 0 {
		g.streams.Follow(a.Neighbours)
	}
	g.send(a.Send)
	if a.Distances != nil {
		if err := statedir.SaveDistances(g.cfg.StateDir, a.Distances); err != nil {
			g.log.Warn("cannot save the distances of clusters; the next life measures them for a minute", "err", err)
		}
	}
	if a.Statement != nil {
		if err := statedir.SaveStatement(g.cfg.StateDir, a.Statement); err != nil {
			g.log.Warn("cannot save the statement about this node; if it restarts while no signer is heard, it is not believed", "err", err)
		}
	}
	if len(a.Dirty) > 0 && g.records != nil {
		g.unsaved.add(a.Dirty)
		g.dirty.Poke()
	}
	if a.Changed {
		g.changed.Poke()
	}
	if a.Beat {
		g.beats.Poke()
	}
	if a.Pulse > 0 {
		time.AfterFunc(a.Pulse, func() { g.do((*node.Node).Pulse) })
	}
}

// send gives messages to the streams. Messages to several peers are encoded once.
func (g *Gossip) send(all []replica.Envelope) {
	var last replica.Message
	var frame []byte
	for _, e := range all {
		if e.Message != last {
			var err error
			if frame, err = replica.Encode(e.Message); err != nil {
				g.log.Error("cannot encode message", "to", e.To, "err", err)
				continue
			}
			last = e.Message
		}
		g.streams.Send(e.To, frame)
	}
}

func (c Config) check() error {
	var errs []error
	if _, err := member.Parse(member.ID{Origin: c.Self, Boot: 1}.String()); err != nil || c.Self.Node == "" {
		errs = append(errs, fmt.Errorf("gossip: %q is not a valid CLUSTER/NODE name", c.Self))
	}
	if err := member.CheckUID(c.UID); err != nil {
		errs = append(errs, fmt.Errorf("gossip: %w", err))
	}
	if !c.Bind.IsValid() || c.Bind.Port() == 0 {
		errs = append(errs, fmt.Errorf("gossip: bind address %s needs an address and a port", c.Bind))
	} else if c.Bind.Addr().IsUnspecified() && !c.Advertise.IsValid() {
		errs = append(errs, fmt.Errorf("gossip: others cannot dial bind address %s; set an advertise address", c.Bind))
	}
	if c.Advertise.IsValid() && (c.Advertise.Addr().IsUnspecified() || c.Advertise.Port() == 0) {
		errs = append(errs, fmt.Errorf("gossip: advertise address %s needs an address and a port that others can dial", c.Advertise))
	}
	if len(c.Keys) == 0 {
		errs = append(errs, errors.New("gossip: there is no key"))
	}
	for _, s := range c.Seeds {
		if _, _, err := splitSeed(s); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// State returns the records held and the contact with each node. The result is never changed
// afterwards.
func (g *Gossip) State() clustermesh.State {
	return ask(g, func(n *node.Node, _ time.Time) clustermesh.State { return n.State() })
}

// Changed receives a value after State, Leader, Synced or Problems changed, except for changes that
// Publish or PublishCluster reported to its caller. Several changes can share one value.
func (g *Gossip) Changed() <-chan struct{} { return g.changed }

// Leader reports whether this node writes the cluster's record: by Config.Lead or, without
// that, because it has the lowest name of the live members of its cluster.
func (g *Gossip) Leader() bool {
	return ask(g, func(n *node.Node, _ time.Time) bool { return n.Leader() })
}

// Synced reports whether the records held count as complete: they were loaded from disk, or an
// exchange with a peer has completed, or there is no other daemon to ask. Otherwise waiting is
// what this node waits for.
func (g *Gossip) Synced() (ok bool, waiting string) {
	g.do(func(n *node.Node, _ time.Time) { ok, waiting = n.Synced() })
	return ok, waiting
}

// Fresh reports whether the records held are those of this life, not only what was saved in an
// earlier one: an exchange with a peer has completed, or no other daemon is known. What was saved
// can lack the changes before a crash.
func (g *Gossip) Fresh() bool {
	return ask(g, func(n *node.Node, _ time.Time) bool { return n.Fresh() })
}

// Heard returns when each other node was last heard in this life of the daemon.
func (g *Gossip) Heard() map[clustermesh.Origin]time.Time {
	return ask(g, func(n *node.Node, _ time.Time) map[clustermesh.Origin]time.Time { return n.Heard() })
}

// Problems returns the current Problems.
func (g *Gossip) Problems() []clustermesh.Problem {
	return ask(g, (*node.Node).Problems)
}

// Trust returns whom this node believes. The maps are never changed afterwards.
func (g *Gossip) Trust() Trust {
	return ask(g, func(n *node.Node, _ time.Time) Trust { return n.Trust() })
}

// RTTs returns the round-trip times of other clusters' nodes, the shortest of the last pings.
func (g *Gossip) RTTs() map[clustermesh.Origin]time.Duration {
	return ask(g, func(n *node.Node, _ time.Time) map[clustermesh.Origin]time.Duration { return n.RTTs() })
}

// Ways is how records travel, for people; Arrival is when a record came, and from which peer.
type (
	Ways    = node.Ways
	Arrival = node.Arrival
)

// Ways returns how records travel now.
func (g *Gossip) Ways() Ways { return ask(g, (*node.Node).Ways) }

// Ahead returns by how much the clock of another cluster's node is ahead of this machine's, if that
// is known; see observe.Distances.
func (g *Gossip) Ahead(o clustermesh.Origin) (by time.Duration, known bool) {
	g.do(func(n *node.Node, _ time.Time) { by, known = n.Ahead(o) })
	return by, known
}

// Distances returns how far away clusters are that are not among the nearest, in steps; see
// observe.Distances.
func (g *Gossip) Distances() map[clustermesh.ClusterName]uint32 {
	return ask(g, func(n *node.Node, _ time.Time) map[clustermesh.ClusterName]uint32 { return n.Distances() })
}

// Publish sets the content of this node's record: Node and Endpoints. Claims about silent nodes are
// added here. It reports whether State changed. State includes the content at once, and Changed
// does not report it, because the caller knows already. The content must not be changed afterwards.
func (g *Gossip) Publish(c clustermesh.Content) (changed bool) {
	g.learn()
	return ask(g, func(n *node.Node, now time.Time) bool { return n.Publish(c, now) })
}

// PublishCluster sets the content of the cluster's record: Exports, Allocations, and Endpoints that name
// no node.
// It does nothing unless this node is the leader; a new leader must publish again. Like Publish, it
// reports whether State changed. If the write is delayed because the record is large, Changed
// reports it later. The content must not be changed afterwards.
func (g *Gossip) PublishCluster(c clustermesh.Content) (changed bool) {
	return ask(g, func(n *node.Node, now time.Time) bool { return n.PublishCluster(c, now) })
}

// Repin replaces the pins, and admits or refuses all records again.
func (g *Gossip) Repin(pins authority.Pins) {
	g.do(func(n *node.Node, now time.Time) { n.Repin(pins, now) })
}

// SetLax sets whether everyone is trusted in spite of the pins: see Authority.Lax.
func (g *Gossip) SetLax(lax bool) {
	g.do(func(n *node.Node, now time.Time) { n.SetLax(lax, now) })
}

// Accept sets which clusters' Services the annotated namespaces of this cluster accept, and which
// namespaces are local.
func (g *Gossip) Accept(a clustermesh.Accept, l clustermesh.LocalNamespaces) {
	g.do(func(n *node.Node, now time.Time) { n.Accept(a, l, now) })
}

// sleep waits for d. It returns false, at once, if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

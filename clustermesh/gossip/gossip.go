package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/observe"
	"strait.io/strait/clustermesh/gossip/pool"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/clustermesh/trust"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// Config says which node a Gossip speaks for, and where.
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
	// Authority signs what this node says, and decides what is believed of others. Nil signs nothing
	// and believes everybody who has the key.
	Authority *Authority
	// Attest returns an error unless it was a node itself that asked for a statement about it. It is called
	// only on a machine that has the root, and only with requests that the owner of the node key signed. If
	// it is nil, this machine signs only for itself.
	Attest func(context.Context, authority.Request) error
	// Objects returns what the objects of this cluster say of its nodes, and whether that is known yet: only
	// what agrees with it is stated, of this node too. Nil states of each node what it says.
	Objects func() (authority.Objects, bool)
	// Token returns what proves to Attest which node asks. Nil if nothing does.
	Token func() (string, error)
	// Log may be nil.
	Log *slog.Logger

	// topology replaces topology.FullMesh, for tests.
	topology topology.Topology
	// clock replaces time.Now where statements about other nodes are signed, for tests.
	clock func() time.Time
}

// Authority is with which keys this node signs, and whom it believes.
type Authority = trust.Config

// Trust is whom a node believes, and why.
type Trust = trust.Summary

// Gossip is the clusterset as this node hears it. All methods are safe for concurrent use.
type Gossip struct {
	cfg       Config
	self      member.Peer // this life of the daemon
	loaded    bool        // records were read from disk
	everySeed bool        // all seeds were reached in the last round
	log       *slog.Logger
	streams   *stream.Streams
	clusters  *clusters
	seats     *seats
	strangers *strangers
	attests   attests
	changed   notify.Signal
	dirty     notify.Signal
	events    notify.Signal // wakes the loop
	decoding  sync.Mutex    // held while a large message is decoded

	rekeying sync.Mutex // held while cfg.Keys is read or changed
	stating  sync.Mutex // held while a statement about another node is made, so that two do not get the same
	pool     *pool.Pool // nil before Run

	mu            sync.Mutex
	replica       *replica.Replica
	trust         *trust.Store
	contacts      *observe.Contacts
	witness       observe.Witness
	distances     *observe.Distances
	seeds         *member.Seeds
	own           *clustermesh.Content // as published, without claims; nil before the first Publish
	cluster       *clustermesh.Content // as published by this leader
	clusterAt     time.Time            // earliest time of the next write of the cluster's record
	leader        leader
	behind        bool // this machine's clock is behind those of most
	problems      problemBook
	logged        allowance // for lines about Problems, and loggedStrange about those of strangers
	loggedStrange allowance
	running       bool
	view          clustermesh.State
	stale         bool // view is out of date
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
		events:    notify.New(),
		contacts:  observe.NewContacts(cfg.Self),
		distances: observe.NewDistances(loadDistances(cfg.StateDir), time.Now()),
		seeds:     member.NewSeeds(cfg.Seeds, cfg.Bind, cfg.Advertise),
		problems:  newProblemBook(),
		logged:    allowance{most: maxLogged}, loggedStrange: allowance{most: maxStrangeLogged},
		strangers: newStrangers(),
		attests:   newAttests(),
		trust:     trust.New(cfg.Authority, cfg.Self),
		stale:     true,
	}
	g.trust.CheckObjects(cfg.Objects != nil)
	held, err := loadState(cfg.StateDir)
	if err != nil {
		g.problem("state", stateProblem(err), 0)
	}
	// In nanoseconds, because two daemons of one name that start in the same millisecond must not
	// be the same member.
	boot := uint64(time.Now().UnixNano())
	for _, e := range held {
		if e.Record.Origin == cfg.Self && ahead(cfg.Self, e.Record.Stamp.Epoch, time.Now()) == 0 {
			boot = max(boot, e.Record.Stamp.Epoch+1)
			g.trust.RestoreSealed(e)
			g.witness.Restore(e.Record.Content.Silent)
		}
	}
	g.self = member.Peer{ID: member.ID{Origin: cfg.Self, Boot: boot}, UID: cfg.UID}
	g.loadClusters()
	g.loaded = len(held) > 0
	g.replica = replica.New(replica.Config{
		Complete: g.loaded, Alone: func() bool { return g.seeds.Waiting() == "" },
		Self: cfg.Self, Epoch: boot, UID: cfg.UID, Admit: g.admitRecord, Seal: g.seal, Own: g.trust.OwnRecord, Topology: cfg.topology,
		Ahead: func(o clustermesh.Origin, epoch uint64) time.Duration { return ahead(o, epoch, time.Now()) },
	}, held)
	g.trust.SetRecords(g.replica)
	g.contacts.Pin(g.trust.Pinned)
	g.restoreStatement()
	g.seats = newSeats(g.trust.Pins())
	g.seats.know(cfg.Self, g.replica.Records())
	// What is not believed any more is unknown, not absent: others may have it with proof.
	g.loaded = g.loaded && !g.trust.Refuses()
	g.contacts.Restore(g.witness.Silences())
	g.streams, err = stream.New(g.self, cfg.Keys, g.credentials(), host{g}, g.signer(), g.log)
	return g, err
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
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stale {
		g.view = clustermesh.State{
			Records: g.replica.Records(), Contacts: g.contacts.All(g.replica.Records()),
			Joined: g.trust.Joined(), Quotas: g.trust.Quotas(), Proven: g.contacts.Proven(),
		}
		g.stale = false
	}
	return g.view
}

// Changed receives a value after State, Leader, Synced or Problems changed, except for changes that
// Publish or PublishCluster reported to its caller. Several changes can share one value.
func (g *Gossip) Changed() <-chan struct{} { return g.changed }

// Leader reports whether this node writes the cluster's record: Config.Lead says so or, without
// that, it has the lowest name of the live members of its cluster.
func (g *Gossip) Leader() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leader.is
}

// Synced reports whether the records held count as complete: they were loaded from disk, or an
// exchange with a peer has completed, or there is no other daemon to ask. Otherwise waiting says
// what this node waits for.
func (g *Gossip) Synced() (ok bool, waiting string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.loaded || g.replica.Synced() {
		return true, ""
	}
	waiting = g.seeds.Waiting()
	return waiting == "", waiting
}

// Fresh reports whether the records held are those of this life, not only what was saved in an
// earlier one: an exchange with a peer has completed, or no other daemon is known. What was saved
// can lack the changes before a crash.
func (g *Gossip) Fresh() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.replica.Synced() {
		return true
	}
	for o := range g.replica.Records() {
		if o.Node != "" && o != g.cfg.Self {
			return false
		}
	}
	return g.seeds.Waiting() == ""
}

// Heard returns when each other node was last heard in this life of the daemon.
func (g *Gossip) Heard() map[clustermesh.Origin]time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.contacts.Heard()
}

// Problems returns the current Problems.
func (g *Gossip) Problems() []clustermesh.Problem {
	g.mu.Lock()
	defer g.mu.Unlock()
	return clustermesh.SortProblems(slices.Concat(g.problems.list(time.Now()), g.trust.OwnProblems()))
}

// Trust returns whom this node believes. The maps are never changed afterwards.
func (g *Gossip) Trust() Trust {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.trust.Summary()
	for _, e := range g.replica.Entries() {
		t.Sealed[e.Record.Origin] = len(e.Seal()) > 0
	}
	return t
}

// apply carries out what the replica decided, and pokes Changed if State changed. The lock is held.
func (g *Gossip) apply(out replica.Output) {
	if g.carryOut(out) {
		g.changed.Poke()
	}
}

// carryOut does what the replica decided, and reports whether State changed. It never blocks. The
// lock is held.
func (g *Gossip) carryOut(out replica.Output) (changed bool) {
	var last replica.Message
	var frame []byte
	for _, e := range out.Send {
		if e.Message != last {
			var err error
			if frame, err = replica.Encode(e.Message); err != nil {
				g.log.Error("cannot encode message", "to", e.To, "error", err)
				continue
			}
			last = e.Message
		}
		g.streams.Send(e.To, frame)
	}
	for _, p := range out.Problems {
		if g.behind && p.Code == problem.RecordAhead {
			continue // one Problem says it of all
		}
		key := "replica " + string(p.Code) + " " + p.Object
		if p.Code == problem.ClusterNotPinned || p.Code == problem.RecordRejected {
			g.strange(key, p) // a peer without proof can make these at will
			continue
		}
		g.problem(key, p, problemLife)
	}
	if len(out.Changed) == 0 {
		return false
	}
	g.stale = true
	g.dirty.Poke()
	return true
}

// touch marks State as out of date, and pokes Changed. The lock is held.
func (g *Gossip) touch() {
	g.stale = true
	g.changed.Poke()
}

// problem records a Problem for the time life, or until it is solved if life is 0. The lock is
// held, or nothing runs yet.
func (g *Gossip) problem(key string, p clustermesh.Problem, life time.Duration) {
	g.note(key, p, false, life)
}

// strange records a Problem that peers without proof can make, about names and addresses that they choose.
// The lock is held.
func (g *Gossip) strange(key string, p clustermesh.Problem) { g.note(key, p, true, problemLife) }

func (g *Gossip) note(key string, p clustermesh.Problem, strange bool, life time.Duration) {
	now := time.Now()
	p = p.Clean()
	if !g.problems.set(key, p, strange, life, now) {
		return
	}
	logged := &g.logged
	if strange {
		logged = &g.loggedStrange
	}
	if left, ok := logged.take(now); ok {
		g.log.Warn("problem", "code", p.Code, "what", p.String())
		if left == 0 {
			g.log.Warn("more problems are not logged for up to a minute; see them with: strait status")
		}
	}
	g.changed.Poke()
}

func (g *Gossip) solved(key string) {
	if g.problems.clear(key) {
		g.changed.Poke()
	}
}

// Repin replaces the pins, and judges all records again.
func (g *Gossip) Repin(pins authority.Pins) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trust.Repin(pins)
	g.seats.repin(g.trust.Pins())
	g.clusters.repin(g.trust.Pins() != nil)
	// What was refused may be believed now; otherwise it is reported again.
	g.problems.clearAll("replica ")
	g.readmit()
	if own, held := g.replica.Records()[g.cfg.Self]; held {
		g.trust.CheckOwn(own)
	}
}

// Believe says whether everybody is believed from now on: see Authority.Lax.
func (g *Gossip) Believe(everybody bool) {
	g.mu.Lock()
	changed, pins := g.trust.SetLax(everybody), g.trust.Listed()
	g.mu.Unlock()
	if changed {
		g.Repin(pins)
	}
}

// Accept says which clusters' Services the namespaces of this cluster accept that say so, and which
// namespaces are local.
func (g *Gossip) Accept(a clustermesh.Accept, l clustermesh.LocalNamespaces) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trust.SetAccept(a, l) {
		g.readmit()
	}
}

// readmit judges all records again. The lock is held.
func (g *Gossip) readmit() {
	g.replica.Readmit()
	g.touch()
	g.dirty.Poke()
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

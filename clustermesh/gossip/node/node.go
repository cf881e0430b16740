// Package node is a daemon's part in gossip without I/O: an event and its time go in, and actions
// come out.
//
// Inputs are what memberlist and streams report, what the daemon publishes, results of probes and
// dials, pins, and beats of a clock. Outputs are Actions (messages to send, neighbours to keep
// streams to, what to save and to log), and answers: the state, the leader, Problems, whom to probe
// or to ask. The same code runs in the daemon and in simulations. It must not know sockets, files,
// clocks, locks, goroutines or memberlist; package gossip owns those.
//
// A Node has parts: core (core.go: the time, actions and Problems, of which book.go holds the
// bounded list), observer (observer.go, seeds.go: what is seen of other daemons, and where to look
// for more), statements (statements.go, request.go, issue.go: whom to believe, and the statements
// about this node and others), and leadership (election.go), which asks the two before it. The Node
// connects them with the records: records.go exchanges these, members.go follows who is there,
// clock.go checks this machine's clock, publish.go writes this node's records, and peers.go judges
// who is at the other end of a connection. It composes the pure packages replica, trust, topology,
// observe and member.
package node

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/clustermesh/trust"
)

// Config is which node it is, and what it works with.
type Config struct {
	// Self is this node, and UID that of its cluster.
	Self clustermesh.Origin
	UID  string
	// Bind is where the daemon listens, and Advertise where others dial it.
	Bind, Advertise netip.AddrPort
	// Seeds are "host:port" of any daemons of the clusterset.
	Seeds []string
	// Lead, if not nil, reports whether this node writes the cluster's record, and since when it
	// leads, in Unix milliseconds. If it is nil, the live member of the cluster with the lowest name leads.
	Lead func() (is bool, since uint64)
	// Authority signs what this node writes, and decides what is believed of others. Nil signs nothing
	// and believes everyone.
	Authority *trust.Config
	// Objects is true if statements must agree with the objects of the cluster; see SetObjects.
	Objects bool
	// Proves is true if the daemon proves on connections which node it is.
	Proves bool
	// Owners knows whose the clusters' names are, and Room bounds the members.
	Owners Owners
	Room   Room
	// Topology chooses the neighbours. Nil is topology.Default().
	Topology topology.Topology
	// Random is the source of all randomness.
	Random *rand.Rand
	// Measure runs work, and returns how long that took. Nil takes no time.
	Measure func(work func()) time.Duration
}

// Owners knows which UID owns the name of each cluster; *member.Clusters does.
type Owners interface {
	Admit(c clustermesh.ClusterName, uid string, now time.Time) (owner string, ok bool)
	Belongs(c clustermesh.ClusterName, uid string) (owner string, ok bool)
	Look(alive []clustermesh.ClusterName, now time.Time) (moved bool)
	SetPinned(bool)
}

// Room bounds the members of each cluster; *member.Room is one.
type Room interface {
	SetQuotas(map[clustermesh.ClusterName]int)
	Know(nodes map[clustermesh.Origin]bool)
}

// Saved is what an earlier life of the daemon saved. Zero values are unknown.
type Saved struct {
	Records   []replica.Entry
	Distances map[clustermesh.ClusterName]uint32
	Statement []byte
}

// Node is a daemon's part in gossip. It is not safe for concurrent use. The result of an event is in
// Actions; see Take.
type Node struct {
	*core
	*observer
	*statements
	*leadership
	replica *replica.Replica

	loaded bool                 // records were read from disk
	own    *clustermesh.Content // as published, without claims; nil before the first Publish
	behind bool                 // this machine's clock is behind those of most
	epochs epochs
	ways   ways
	pulses bool // Pulse will be called

	nextTick time.Time

	view clustermesh.State
}

// New returns a node that holds what an earlier life saved.
func New(cfg Config, saved Saved, now time.Time) *Node {
	if cfg.Measure == nil {
		cfg.Measure = func(work func()) time.Duration { work(); return 0 }
	}
	c := &core{cfg: cfg, now: now, problems: newProblemBook(), stale: true}
	n := &Node{
		core: c, observer: newObserver(c, saved.Distances), statements: &statements{core: c, trust: trust.New(cfg.Authority, cfg.Self)},
		loaded: len(saved.Records) > 0,
	}
	n.ways.arrivals = map[clustermesh.Origin]Arrival{}
	n.leadership = &leadership{core: c, observer: n.observer, statements: n.statements}
	n.trust.CheckObjects(cfg.Objects)
	// In nanoseconds, because two daemons of one name that start in the same millisecond must not
	// be the same member.
	boot := uint64(now.UnixNano())
	for _, e := range saved.Records {
		if e.Record.Origin == cfg.Self && ahead(cfg.Self, e.Record.Stamp.Epoch, now) == 0 {
			boot = max(boot, e.Record.Stamp.Epoch+1)
			n.trust.RestoreSealed(e)
			n.witness.Restore(e.Record.Content.Silent)
		}
	}
	n.self = member.Peer{ID: member.ID{Origin: cfg.Self, Boot: boot}, UID: cfg.UID}
	n.replica = replica.New(replica.Config{
		Complete: n.loaded, Alone: func() bool { return n.seeds.Waiting() == "" },
		Self: cfg.Self, Epoch: boot, UID: cfg.UID, Admit: n.admit, Seal: n.seal, Own: n.trust.OwnRecord, Topology: cfg.Topology,
		Ahead: func(o clustermesh.Origin, epoch uint64) time.Duration { return ahead(o, epoch, n.now) },
	}, saved.Records)
	n.trust.SetRecords(n.replica)
	n.records = n.replica // of which it only reads
	n.contacts.Pin(n.trust.Pinned)
	n.trust.Restore(saved.Statement)
	n.setQuotas()
	n.knowMembers()
	// What is not believed any more is unknown, not absent: others may have it with proof.
	n.loaded = n.loaded && !n.trust.Refuses()
	n.contacts.Restore(n.witness.Silences())
	return n
}

// State returns the records held and the contact with each node. The result is never changed
// afterwards.
func (n *Node) State() clustermesh.State {
	if n.stale {
		n.view = clustermesh.State{
			Records: n.replica.Records(), Contacts: n.contacts.All(n.replica.Records()),
			Joined: n.trust.Joined(), Quotas: n.trust.Quotas(), Proven: n.contacts.Proven(),
		}
		n.stale = false
	}
	return n.view
}

// Synced reports whether the records held count as complete: they were loaded from disk, or an
// exchange with a peer has completed, or there is no other daemon to ask. Otherwise waiting is what this
// node waits for.
func (n *Node) Synced() (ok bool, waiting string) {
	if n.loaded || n.replica.Synced() {
		return true, ""
	}
	waiting = n.seeds.Waiting()
	return waiting == "", waiting
}

// Fresh reports whether the records held are those of this life, not only what was saved in an
// earlier one: an exchange with a peer has completed, or no other daemon is known. What was saved
// can lack the changes before a crash.
func (n *Node) Fresh() bool {
	if n.replica.Synced() {
		return true
	}
	return !n.areKnown() && n.seeds.Waiting() == ""
}

// Record returns the record of one origin, without a copy of the others as State has it.
func (n *Node) Record(o clustermesh.Origin) (clustermesh.Record, bool) { return n.replica.Record(o) }

// Entries returns all records, for a file.
func (n *Node) Entries() []replica.Entry { return n.replica.Entries() }

// Entry returns what is held of one origin.
func (n *Node) Entry(o clustermesh.Origin) (replica.Entry, bool) { return n.replica.Entry(o) }

// Trust returns whom this node believes. The maps are never changed afterwards.
func (n *Node) Trust() trust.Summary {
	t := n.trust.Summary()
	t.Sealed = n.replica.Sealed()
	return t
}

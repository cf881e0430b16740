// Package replica is the replication protocol for a clusterset's records, without I/O: events go in
// (a message, a publication, a tick), and messages to send and changed origins come out.
//
// Inputs are records of this node (Publish), messages of peers (Receive), the live members
// (SetMembers) and time as ticks of about one second (Tick). Outputs are Output values and the
// records held (Records). The same code runs in the daemon and in simulations. It must not know
// sockets, clocks, loggers, memberlist, nor which records mean death (package clustermesh).
//
// How it works: only an origin itself writes its record. The larger version wins everywhere, so
// replicas that have heard the same records hold the same. News is pushed to a few peers and
// announced to the others. Once a tick, one random peer is asked whether it holds the same, which
// repairs any loss; where both ends of a stream notice any loss, now and then (audit.go). Silence
// alone never deletes a record; the record of a node is dropped once its cluster no longer lists
// the node, and its daemon is not a live member or is not listed for a minute.
package replica

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// Peer is a daemon to talk to, named by the origin that it writes.
type Peer = clustermesh.Origin

// Config says whose replica it is.
type Config struct {
	// Self is the node whose record this replica writes.
	Self clustermesh.Origin
	// Epoch identifies this life of the writer. If Self's held record has the same epoch or a later
	// one, New raises it above that.
	Epoch uint64
	// UID is the UID of Self's cluster. It is part of the records that this replica writes.
	UID string
	// Admit returns the part of a record that its origin may say. If the whole record is refused, it
	// returns false, and the Problem. By is the peer that sent it; zero if it was held already. Nil
	// admits all.
	Admit func(by Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool)
	// Seal returns the proof that this node wrote an entry. Nil writes records without proof.
	Seal func(e Entry) []byte
	// Own returns what is in force of the record of Self, which is not judged: all that it says,
	// and what this node knows of it besides. Nil adds nothing.
	Own func(clustermesh.Record) clustermesh.Record
	// Ahead returns how far in the future an epoch is, and 0 if a clock that is right can have made
	// it. A record that is ahead is refused: its owner could not write above it. One that is held
	// already stays until its owner writes another, because then this machine's clock may be the one
	// that is wrong. Nil finds none.
	Ahead func(o clustermesh.Origin, epoch uint64) time.Duration
	// Complete says that the entries held are everything that was known in an earlier life.
	Complete bool
	// Alone reports whether there is no other daemon to learn anything from. Nil means no.
	Alone func() bool
	// Topology chooses the neighbours among the live members, and which of them get news. Nil is
	// topology.Default.
	Topology topology.Topology
}

// Envelope is a message to send. Envelopes to several peers can share one Message.
type Envelope struct {
	To      Peer
	Message Message
}

// Output is what one event caused.
type Output struct {
	Send []Envelope
	// Neighbours are those that are to have a stream from now on (true) or no more (false).
	Neighbours map[Peer]bool
	// Changed are the origins whose record was replaced or dropped.
	Changed []clustermesh.Origin
	// Problems are for a person to see, each with what to do about it.
	Problems []clustermesh.Problem
}

func (o *Output) add(p Output) {
	o.Send = append(o.Send, p.Send...)
	o.Changed = append(o.Changed, p.Changed...)
	o.Problems = append(o.Problems, p.Problems...)
}

func (o *Output) send(to Peer, m Message) { o.Send = append(o.Send, Envelope{to, m}) }

// Replica holds the latest record of every origin heard of. Not safe for concurrent use.
type Replica struct {
	self    clustermesh.Origin
	uid     string
	admit   func(by Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool)
	seal    func(e Entry) []byte
	own     func(clustermesh.Record) clustermesh.Record
	ahead   func(o clustermesh.Origin, epoch uint64) time.Duration
	writer  writer
	lead    lead
	entries map[clustermesh.Origin]Entry
	counts  map[clustermesh.ClusterName]Count
	view    clustermesh.Draft[clustermesh.Record] // what is admitted of them
	// changes counts those of view, and changed has the number of each cluster's last one, for clusters that
	// have a record.
	changes uint64
	changed map[clustermesh.ClusterName]uint64
	// history is what is left of the earlier records of each cluster.
	history  map[clustermesh.ClusterName]clustermesh.History
	digests  map[clustermesh.ClusterName]digest
	topology topology.Topology
	ways     topology.Ways // among the live members
	// members are the other daemons that are live; live lists them, sorted.
	members map[clustermesh.Origin]bool
	live    []clustermesh.Origin
	// peers are the neighbours; chosen lists them, sorted.
	peers  neighbours
	chosen []Peer
	// asked is what was asked for since the last tick, so that each version is asked for once.
	asked  map[clustermesh.Origin]ask
	doubts doubts
	served map[Peer]*served // since the last tick
	// hints are the origins of which neighbours are told after a moment: by that time they should have
	// the record by another way, so that they need not ask.
	hints delayed[map[clustermesh.Origin]bool]
	// others are the origins for whose records another peer is asked after a moment: one that answers
	// needs less. What is new must not wait longer because a peer offers what it does not have.
	others delayed[bool]
	audit  audit
	// hellos are those of neighbours.
	hellos map[Peer]greeting
	asking asking
	// origins are those of entries, by what identifies them in a Delta.
	origins map[uint64]clustermesh.Origin
	// rejected are the versions that were not accepted. For a while they are not asked for again.
	rejected map[clustermesh.Origin]Version
	pace     pace
	// missing are the origins whose records the first exchange still lacks.
	missing    map[clustermesh.Origin]bool
	exchanging bool
	with       Peer   // the other side of that exchange
	said       Sender // and what it said of itself
	// complete is Config.Complete. While neither it nor synced is true, agree are the peers that hold
	// the same and know no better.
	complete, synced bool
	alone            func() bool
	agree            map[Peer]bool
	// absent are the nodes that are here, or were lately, and that their clusters do not list.
	absent map[clustermesh.Origin]absence
	// strays are those of them whose records are held.
	strays map[clustermesh.Origin]bool
	// ticks counts the ticks of this life.
	ticks int
}

// New returns a replica that holds the entries of an earlier life. Self's own record stays in force
// until the first Publish: until then, its content is unknown, not empty.
func New(cfg Config, held []Entry) *Replica {
	cfg = cfg.withDefaults()
	r := &Replica{
		self:     cfg.Self,
		uid:      cfg.UID,
		admit:    cfg.Admit,
		seal:     cfg.Seal,
		own:      cfg.Own,
		ahead:    cfg.Ahead,
		writer:   writer{epoch: max(cfg.Epoch, 1)},
		entries:  map[clustermesh.Origin]Entry{},
		counts:   map[clustermesh.ClusterName]Count{},
		changed:  map[clustermesh.ClusterName]uint64{},
		history:  map[clustermesh.ClusterName]clustermesh.History{},
		digests:  map[clustermesh.ClusterName]digest{},
		asked:    map[clustermesh.Origin]ask{},
		served:   map[Peer]*served{},
		audit:    audit{whole: map[Peer]bool{}},
		hellos:   map[Peer]greeting{},
		asking:   asking{since: map[Peer]int{}, sure: map[Peer]bool{}},
		origins:  map[uint64]clustermesh.Origin{},
		rejected: map[clustermesh.Origin]Version{},
		pace:     newPace(),
		missing:  map[clustermesh.Origin]bool{},
		complete: cfg.Complete,
		alone:    cfg.Alone,
		agree:    map[Peer]bool{},
		members:  map[clustermesh.Origin]bool{},
		absent:   map[clustermesh.Origin]absence{},
		strays:   map[clustermesh.Origin]bool{},
		topology: cfg.Topology,
		ways:     cfg.Topology.Ways(topology.View{Self: cfg.Self}),
	}
	for _, e := range held {
		if r.newer(e) {
			if rec, ok := r.readmit(e); ok {
				r.put(e, rec)
			}
		}
	}
	if own, ok := r.entries[r.self]; ok && r.early(own) == 0 {
		r.writer.above(own.Record.Stamp.Epoch)
	}
	return r
}

// withDefaults returns the configuration with what stands for functions that are nil.
func (cfg Config) withDefaults() Config {
	if cfg.Topology == nil {
		cfg.Topology = topology.Default()
	}
	if cfg.Admit == nil {
		cfg.Admit = func(_ Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool) {
			return e.Record, clustermesh.Problem{}, true
		}
	}
	if cfg.Seal == nil {
		cfg.Seal = func(Entry) []byte { return nil }
	}
	if cfg.Own == nil {
		cfg.Own = func(rec clustermesh.Record) clustermesh.Record { return rec }
	}
	if cfg.Alone == nil {
		cfg.Alone = func() bool { return false }
	}
	if cfg.Ahead == nil {
		cfg.Ahead = func(clustermesh.Origin, uint64) time.Duration { return 0 }
	}
	return cfg
}

// Records returns what is admitted of each origin's latest record. It is never changed afterwards.
func (r *Replica) Records() clustermesh.ByOrigin[clustermesh.Record] { return r.view.Share() }

// Record returns what is admitted of one origin's latest record.
func (r *Replica) Record(o clustermesh.Origin) (clustermesh.Record, bool) {
	return r.view.Lookup(o)
}

// Peek returns what Record returns, without a copy of it; nil if there is none. It must not be changed.
func (r *Replica) Peek(o clustermesh.Origin) *clustermesh.Record { return r.view.Peek(o) }

// Changed identifies the last change of what is admitted of a cluster and its nodes; 0 if there is nothing.
func (r *Replica) Changed(c clustermesh.ClusterName) uint64 { return r.changed[c] }

// Size returns the size of an origin's record on the wire, in bytes; 0 if there is none.
func (r *Replica) Size(o clustermesh.Origin) int { return r.entries[o].size }

// Count is the number of a cluster's records that are here.
type Count struct {
	// Records are those of its nodes, and its own.
	Records, Nodes int
}

// Count returns how many records of a cluster are here, and of how many clusters any is.
func (r *Replica) Count(c clustermesh.ClusterName) (of Count, clusters int) {
	return r.counts[c], len(r.counts)
}

// countMore changes by n how many records there are of an origin.
func (r *Replica) countMore(o clustermesh.Origin, n int) {
	c := r.counts[o.Cluster]
	c.Records += n
	if o.Node != "" {
		c.Nodes += n
	}
	r.counts[o.Cluster] = c
	if c.Records == 0 {
		delete(r.counts, o.Cluster)
	}
}

// Entries returns everything held, sorted by origin. It is what to store, and to pass to New.
func (r *Replica) Entries() []Entry {
	return r.sorted(slices.Collect(maps.Keys(r.entries)))
}

// entriesOf returns what is held of some clusters, sorted by origin.
func (r *Replica) entriesOf(clusters map[clustermesh.ClusterName]uint16) []Entry {
	var origins []clustermesh.Origin
	for c := range clusters {
		for o := range r.view.Of(c) {
			origins = append(origins, o)
		}
	}
	return r.sorted(origins)
}

func (r *Replica) sorted(origins []clustermesh.Origin) []Entry {
	slices.SortFunc(origins, clustermesh.Origin.Compare)
	out := make([]Entry, len(origins))
	for i, o := range origins {
		out[i] = r.entries[o]
	}
	return out
}

// Sealed returns which records have a seal.
func (r *Replica) Sealed() map[clustermesh.Origin]bool {
	out := make(map[clustermesh.Origin]bool, len(r.entries))
	for o := range r.entries {
		out[o] = len(r.entries[o].seal) > 0
	}
	return out
}

// Entry returns what is held of one origin.
func (r *Replica) Entry(o clustermesh.Origin) (Entry, bool) {
	e, ok := r.entries[o]
	return e, ok
}

// Synced reports whether an exchange has completed in this life with a peer that was synced itself, or
// knew what it knew in its earlier life: everything that the peer held when the exchange began is held
// here too. See ColdStart for what counts if there is no such peer.
func (r *Replica) Synced() bool { return r.synced }

// Epoch returns the epoch of what this replica writes about its own node.
func (r *Replica) Epoch() uint64 { return r.writer.epoch }

// Tick is called about once a second. It opens an exchange with one random peer, unless the stream to
// that is whole and no audit is due, and does what is due.
func (r *Replica) Tick(rng *rand.Rand) Output {
	r.lead.tick()
	r.audit.asked = false
	if r.ticks++; r.ticks%rejectedTicks == 0 {
		clear(r.rejected)
	}
	r.peers.draw(rng)
	out := r.tickAsked()
	r.tickAsking(&out)
	out.add(r.tickRival())
	out.add(r.tickPace())
	out.add(r.dropLeft())
	for _, p := range r.toAudit(rng) {
		out.send(p, r.open(p))
	}
	return out
}

// newer reports whether the entry beats the one held for its origin. One from the future is beaten by
// any that is not: its writer's clock was corrected.
func (r *Replica) newer(e Entry) bool {
	have, ok := r.entries[e.Record.Origin]
	return !ok || e.version.Compare(have.version) > 0 || r.early(have) > 0 && r.early(e) == 0
}

// put stores an entry, in place of an older one if there is one. Admitted is the part of its record
// that is in force.
func (r *Replica) put(e Entry, admitted clustermesh.Record) {
	e = e.Held()
	o := e.Record.Origin
	d := r.digests[o.Cluster]
	if old, ok := r.entries[o]; ok {
		d.toggle(old)
	} else {
		r.countMore(o, 1)
		r.origins[identify(o)] = o
	}
	d.toggle(e)
	r.digests[o.Cluster] = d
	if o.Node == "" {
		r.history[o.Cluster] = r.history[o.Cluster].Next(o.Cluster, r.entries[o].Record.Content, e.Record.Content)
	}
	old := r.entries[o]
	r.entries[o] = e
	r.show(admitted)
	delete(r.rejected, o)
	r.stray(o)
	if o.Node == "" && !slices.Equal(old.Record.Content.Nodes, e.Record.Content.Nodes) {
		r.strayOf(o.Cluster)
	}
}

// show puts in force what is admitted of a record.
func (r *Replica) show(admitted clustermesh.Record) {
	if o := admitted.Origin; o.Node == "" {
		admitted.Late = r.history[o.Cluster].Late
	}
	r.view.Set(admitted.Origin, admitted)
	r.noteChange(admitted.Origin.Cluster)
}

// noteChange notes a change of what is admitted of a cluster.
func (r *Replica) noteChange(c clustermesh.ClusterName) {
	r.changes++
	if _, any := r.counts[c]; any {
		r.changed[c] = r.changes
	} else {
		delete(r.changed, c)
	}
}

// early returns how far in the future a record was written, and 0 if that is not too far.
func (r *Replica) early(e Entry) time.Duration {
	o := e.Record.Origin
	by := r.ahead(o, e.version.Epoch)
	if at := e.Record.Content.AsOf; o.Node == "" && at > 0 {
		by = max(by, r.ahead(o, min(uint64(at), maxStamp/1000)*1000)) // a cluster's epoch is in milliseconds
	}
	return by
}

// readmit judges an entry that is held. No other node can have written our own.
func (r *Replica) readmit(e Entry) (clustermesh.Record, bool) {
	if e.Record.Origin == r.self {
		return r.own(e.Record), true
	}
	rec, _, ok := r.admit(Peer{}, e)
	return rec, ok
}

// Readmit judges the records held of some clusters again, of all if which is nil: it drops those
// that are no longer admitted, and puts in force what is admitted of the others now. It forgets
// which versions were rejected, so that they are asked for again, soon. Call it after a change of what
// Admit returns. It returns the origins whose records were dropped.
func (r *Replica) Readmit(which func(clustermesh.ClusterName) bool) (dropped []clustermesh.Origin) {
	for o, e := range r.entries {
		if which != nil && !which(o.Cluster) {
			continue
		}
		if rec, ok := r.readmit(e); ok {
			r.show(rec)
		} else {
			r.drop(e)
			dropped = append(dropped, o)
		}
	}
	clear(r.rejected)
	r.audit.everyone = true
	return dropped
}

// drop removes an entry.
func (r *Replica) drop(e Entry) {
	o := e.Record.Origin
	d := r.digests[o.Cluster]
	d.toggle(e)
	r.digests[o.Cluster] = d
	delete(r.entries, o)
	delete(r.origins, identify(o))
	r.countMore(o, -1)
	if o.Node == "" {
		delete(r.history, o.Cluster)
	}
	r.view.Delete(o)
	r.noteChange(o.Cluster)
	delete(r.strays, o)
	if o.Node == "" {
		r.strayOf(o.Cluster)
	}
}

// Package replica is the replication protocol of a clusterset's records, without I/O: each event (a
// message, a publication, a tick) goes in and messages to send and origins that changed come out.
//
// Inputs are records of this node (Publish), messages of peers (Receive), the live members (SetMembers) and
// time as ticks of about one second (Tick). Outputs are Output values and the records held (Records).
// The same code runs in the daemon and in simulations. It must not know sockets, clocks, loggers,
// memberlist, nor which records mean death (package clustermesh).
//
// How it works: an origin alone writes its record; the larger version wins everywhere, so replicas that
// have heard the same records hold the same. News is pushed to a few peers and announced to the others;
// once a tick one random peer is asked whether it holds the same, which repairs any loss. Nothing is
// ever deleted by silence; but the record of a node that is silent is, once its cluster does not list it.
package replica

import (
	"maps"
	"math/rand/v2"
	"slices"

	"strait.io/strait/clustermesh"
)

// Peer is a daemon to talk to, by the origin that it writes.
type Peer = clustermesh.Origin

// Config says whose replica it is.
type Config struct {
	// Self is the node whose record this replica writes.
	Self clustermesh.Origin
	// Epoch is this life of the writer. New raises it above that of Self's held record if need be.
	Epoch uint64
	// UID is that of Self's cluster, and stands in what this replica writes.
	UID string
	// Admit says of a record that came by a peer whether its cluster is the one of that name, and if not, what
	// people should know. Nil admits all.
	Admit func(by Peer, r clustermesh.Record) (clustermesh.Problem, bool)
	// Topology chooses the neighbours among the live members. Nil is FullMesh.
	Topology Topology
}

// Envelope is a message to send. Envelopes to several peers may share one Message.
type Envelope struct {
	To      Peer
	Message Message
}

// Output is what one event caused.
type Output struct {
	Send []Envelope
	// Changed are the origins whose record is another now, or held no more.
	Changed []clustermesh.Origin
	// Problems are for people, each with what to do.
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
	self     clustermesh.Origin
	uid      string
	admit    func(by Peer, r clustermesh.Record) (clustermesh.Problem, bool)
	writer   writer
	entries  map[clustermesh.Origin]Entry
	view     view
	digests  map[clustermesh.ClusterName]sum
	topology Topology
	// members are the other daemons that are live.
	members map[clustermesh.Origin]bool
	// peers are the neighbours, in an order that each tick shuffles; the first of them get news pushed.
	peers []Peer
	// asked are versions on their way to us since the last tick, so that they are asked for once.
	asked map[clustermesh.Origin]Version
	// rejected are versions that did not pass validation: not asked for again.
	rejected map[clustermesh.Origin]Version
	// missing are what the first exchange still lacks.
	missing    map[clustermesh.Origin]bool
	exchanging bool
	synced     bool
	// ticks of this life.
	ticks int
}

// New returns a replica that holds what an earlier life held. Self's own record stays in force until the
// first Publish: unknown is not empty.
func New(cfg Config, held []Entry) *Replica {
	r := &Replica{
		self:     cfg.Self,
		uid:      cfg.UID,
		admit:    cfg.Admit,
		writer:   writer{epoch: max(cfg.Epoch, 1)},
		entries:  map[clustermesh.Origin]Entry{},
		view:     view{records: map[clustermesh.Origin]clustermesh.Record{}},
		digests:  map[clustermesh.ClusterName]sum{},
		asked:    map[clustermesh.Origin]Version{},
		rejected: map[clustermesh.Origin]Version{},
		missing:  map[clustermesh.Origin]bool{},
		topology: cfg.Topology,
	}
	if r.topology == nil {
		r.topology = FullMesh
	}
	if r.admit == nil {
		r.admit = func(Peer, clustermesh.Record) (clustermesh.Problem, bool) { return clustermesh.Problem{}, true }
	}
	for _, e := range held {
		if r.newer(e) {
			r.put(e)
		}
	}
	if own, ok := r.entries[r.self]; ok {
		r.writer.above(own.Record.Stamp.Epoch)
	}
	return r
}

// Records returns each origin's latest record. The map is never changed afterwards.
func (r *Replica) Records() map[clustermesh.Origin]clustermesh.Record { return r.view.share() }

// Record returns the latest record of one origin.
func (r *Replica) Record(o clustermesh.Origin) (clustermesh.Record, bool) {
	e, ok := r.entries[o]
	return e.Record, ok
}

// Size returns how many bytes the record of an origin takes on the wire; 0 if there is none.
func (r *Replica) Size(o clustermesh.Origin) int { return r.entries[o].size }

// Entries returns all that is held, in the order of origins, for keeping and for New.
func (r *Replica) Entries() []Entry {
	out := make([]Entry, 0, len(r.entries))
	for _, o := range slices.SortedFunc(maps.Keys(r.entries), clustermesh.Origin.Compare) {
		out = append(out, r.entries[o])
	}
	return out
}

// Synced reports whether an exchange with any peer has completed in this life: all that the peer had
// when it began is held here too.
func (r *Replica) Synced() bool { return r.synced }

// SetMembers says which daemons are live now. New neighbours are asked at once whether they hold the same.
func (r *Replica) SetMembers(live []clustermesh.Origin) Output {
	var out Output
	r.members = make(map[clustermesh.Origin]bool, len(live))
	others := make([]clustermesh.Origin, 0, len(live))
	for _, o := range live {
		if o != r.self && !r.members[o] {
			r.members[o] = true
			others = append(others, o)
		}
	}
	neighbours := r.topology(r.self, others)
	fresh := make(map[Peer]bool, len(neighbours))
	for _, p := range neighbours {
		fresh[p] = true
	}
	r.peers = slices.DeleteFunc(r.peers, func(p Peer) bool {
		stays := fresh[p]
		delete(fresh, p)
		return !stays
	})
	for _, p := range neighbours {
		if fresh[p] {
			delete(fresh, p)
			r.peers = append(r.peers, p)
			out.send(p, r.digest())
		}
	}
	return out
}

// Neighbours returns the daemons to keep a stream to.
func (r *Replica) Neighbours() []Peer { return slices.Clone(r.peers) }

// Tick is one beat, about a second: one digest exchange with one random peer, and whatever waited.
func (r *Replica) Tick(rng *rand.Rand) Output {
	clear(r.asked)
	r.ticks++
	rng.Shuffle(len(r.peers), func(i, j int) { r.peers[i], r.peers[j] = r.peers[j], r.peers[i] })
	out := r.tickRival()
	out.add(r.dropLeft())
	if len(r.peers) > 0 {
		out.send(r.peers[rng.IntN(len(r.peers))], r.digest())
	}
	return out
}

// newer reports whether the entry beats what is held of its origin.
func (r *Replica) newer(e Entry) bool {
	have, ok := r.entries[e.Record.Origin]
	return !ok || e.version.Compare(have.version) > 0
}

// put holds an entry in place of an older one.
func (r *Replica) put(e Entry) {
	e = e.Held()
	o := e.Record.Origin
	d := r.digests[o.Cluster]
	if old, ok := r.entries[o]; ok {
		d.toggle(old)
	}
	d.toggle(e)
	r.digests[o.Cluster] = d
	r.entries[o] = e
	r.view.set(e.Record)
	delete(r.rejected, o)
}

// Purge forgets the records that are not admitted any more, and lets those in that were refused: a name has
// come to belong to another cluster. It reports whether there were any.
func (r *Replica) Purge() (changed bool) {
	for o, e := range r.entries {
		if _, ok := r.admit(o, e.Record); ok {
			continue
		}
		r.drop(e)
		changed = true
	}
	clear(r.rejected)
	return changed
}

// drop holds an entry no more.
func (r *Replica) drop(e Entry) {
	o := e.Record.Origin
	d := r.digests[o.Cluster]
	d.toggle(e)
	r.digests[o.Cluster] = d
	delete(r.entries, o)
	r.view.remove(o)
}

// view is a map that is copied when it is changed after it was given away.
type view struct {
	records map[clustermesh.Origin]clustermesh.Record
	shared  bool
}

func (v *view) share() map[clustermesh.Origin]clustermesh.Record {
	v.shared = true
	return v.records
}

func (v *view) own() {
	if v.shared {
		v.records, v.shared = maps.Clone(v.records), false
	}
}

func (v *view) set(rec clustermesh.Record) {
	v.own()
	v.records[rec.Origin] = rec
}

func (v *view) remove(o clustermesh.Origin) {
	v.own()
	delete(v.records, o)
}

// Exchange opens a digest exchange with one peer: one to which a broken stream stands again.
func (r *Replica) Exchange(p Peer) Output {
	var out Output
	out.send(p, r.digest())
	return out
}

package replica

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/internal/problem"
)

// chunkBytes bounds the records of one Snapshot, in bytes: a larger answer is split. One record can
// exceed it.
const chunkBytes = 1 << 20

// maxRejected bounds how many rejected versions are remembered.
const maxRejected = 1024

// rejectedTicks is after how many ticks a rejected version may be asked for again: the reason can be
// gone, for example because a clock was corrected. Until then the Problem stays: see problemLife in
// package gossip.
const rejectedTicks = 20

// maxProblems bounds the Problems of one message.
const maxProblems = 8

// Receive handles a message from a peer, as returned by Decode.
func (r *Replica) Receive(from Peer, m Message) Output {
	d, doubts := m.(doubted)
	if doubts {
		m = d.Message
	}
	switch m.(type) {
	case *Want, *Digest, *Vector:
		if !r.answers(from, doubts) {
			return Output{}
		}
	}
	switch m := m.(type) {
	case *Snapshot:
		return r.receiveSnapshot(from, m, doubts)
	case *Delta:
		return r.receiveDelta(from, m, doubts)
	case *Hello:
		r.speaks[from] = m.Speaks
	case *Announce:
		return r.receiveOffers(from, m.Offers, doubts)
	case *Want:
		return r.receiveWant(from, m)
	case *Digest:
		return r.receiveDigest(from, m)
	case *Vector:
		return r.receiveVector(from, m, doubts)
	case *Agree:
		r.answered(m.Sender, true)
		r.agreed(from, m.Sender)
	}
	return Output{}
}

// receiveSnapshot accepts newer records and passes them on. Records that were pushed to us are
// pushed on. Records that we asked for are only announced, because most peers will have them.
func (r *Replica) receiveSnapshot(from Peer, s *Snapshot, doubted bool) Output {
	out := r.reject(from, s.Rejected, doubted)
	var pushed, repaired []change
	var again []Offer
	for _, e := range s.Entries {
		o := e.Record.Origin
		_, wanted := r.asked[o]
		if !doubted {
			r.came(o)
		}
		if !r.newer(e) || r.left(o) {
			continue
		}
		if o != r.self && r.pace.full(o) {
			// Before its signature is verified, which costs more than all else here. So a forged one can
			// take the place of a true one, of an origin that writes too fast; the next exchange repairs
			// that.
			kept := e.Held()
			r.pace.hold(o, waiting{from, e.version, &kept, doubted})
			continue
		}
		admitted, p, ok := r.judge(from, e)
		if _, differs := s.items[o]; !ok && differs {
			// What is held can have another seal. The whole record shows whether its writer is to
			// blame.
			again = append(again, Offer{Origin: o, Version: e.version})
			continue
		}
		if !ok {
			r.refuse(&out, Rejected{Origin: o, Version: e.version}, p)
			continue
		}
		if o == r.self && r.writer.content != nil {
			out.add(r.usurped(e.version))
			continue
		}
		if o == r.self {
			// From an earlier life of ours, and later than what we held from it. It stays in force
			// until we publish.
			r.writer.above(e.version.Epoch)
		}
		r.pace.taken[o]++
		c := change{e, r.entries[o], s.items[o]}
		r.put(e, admitted)
		r.came(o)
		out.Changed = append(out.Changed, o)
		if wanted {
			repaired = append(repaired, c)
		} else {
			pushed = append(pushed, c)
		}
	}
	r.settle()
	r.spread(&out, topology.News{From: from}, pushed)
	r.spread(&out, topology.News{From: from, Repaired: true}, repaired)
	out.add(r.receiveOffers(from, again, doubted))
	return out
}

// judge returns what is admitted of a record, or why nothing is.
func (r *Replica) judge(from Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool) {
	admitted, p, ok := r.admit(from, e) // first: a forged entry says nothing about its origin's clock
	if by := r.early(e); ok && by > 0 {
		return admitted, aheadProblem(from, e.Record.Origin, by), false
	}
	return admitted, p, ok
}

// came notes that a record is not waited for any more. What a doubted peer sends must be valid for that.
func (r *Replica) came(o clustermesh.Origin) {
	delete(r.asked, o)
	delete(r.missing, o)
}

// settle completes the first exchange once nothing is missing.
func (r *Replica) settle() {
	if len(r.missing) == 0 && r.exchanging {
		r.exchanging = false
		r.agreed(r.with, r.said)
	}
}

func (r *Replica) reject(from Peer, rejected []Rejected, doubted bool) Output {
	var out Output
	for _, x := range rejected {
		if !doubted {
			delete(r.missing, x.Origin)
		}
		r.refuse(&out, x, x.Origin.RecordRef().Problem(clustermesh.Problem{
			Code:    problem.RecordRejected,
			Message: fmt.Sprintf("ignored, its last valid version stays in force: %v (received from %s)", x.Err, from),
			Try:     "upgrade the older daemon if the versions differ; otherwise report a bug",
		}))
	}
	return out
}

func aheadProblem(from Peer, o clustermesh.Origin, by time.Duration) clustermesh.Problem {
	return o.RecordRef().Problem(clustermesh.Problem{
		Code:    problem.RecordAhead,
		Message: fmt.Sprintf("it was written %s in the future: ignored, its last valid version stays in force (received from %s)", by.Round(time.Minute), from),
		Try:     fmt.Sprintf("correct the clock of the machine that writes for %s; or this machine's clock, if it is the one that is wrong", o),
	})
}

// refuse remembers a rejected version, so that it is not asked for again, and reports why.
func (r *Replica) refuse(out *Output, x Rejected, why clustermesh.Problem) {
	if _, known := r.rejected[x.Origin]; known || len(r.rejected) < maxRejected {
		r.rejected[x.Origin] = x.Version
	}
	if len(out.Problems) < maxProblems {
		out.Problems = append(out.Problems, why)
	}
}

// receiveOffers asks the peer for the records that it has newer versions of.
func (r *Replica) receiveOffers(from Peer, offers []Offer, doubted bool) Output {
	var out Output
	var want []clustermesh.Origin
	for _, offer := range offers {
		if !r.lacks(offer, doubted, &out) {
			continue
		}
		if r.pace.full(offer.Origin) {
			r.pace.hold(offer.Origin, waiting{from: from, version: offer.Version, doubted: doubted})
			continue
		}
		if r.asks(from, offer, doubted) {
			want = append(want, offer.Origin)
		}
	}
	if len(want) > 0 {
		out.send(from, &Want{want})
	}
	return out
}

// lacks reports whether an offered record should be asked for. Only the version that was rejected is
// left alone: a lower one that is valid is still news. A newer version of our own record is
// not asked for once we have published: we write above it instead, if a believed peer offers it. A version
// that others make up could be so far in the future that daemons whose clocks are behind refuse ours.
func (r *Replica) lacks(offer Offer, doubted bool, out *Output) bool {
	have, ok := r.entries[offer.Origin]
	if ok && r.early(have) == 0 && offer.Version.Compare(have.version) <= 0 || offer.Origin.Check() != nil ||
		offer.Version.Epoch >= maxStamp || offer.Version.Count >= maxStamp || r.left(offer.Origin) ||
		r.ahead(offer.Origin, offer.Version.Epoch) > 0 {
		return false
	}
	if offer.Origin == r.self && r.writer.content != nil {
		if !doubted {
			out.add(r.usurped(offer.Version))
		}
		return false
	}
	return offer.Version != r.rejected[offer.Origin]
}

func (r *Replica) receiveWant(from Peer, w *Want) Output {
	var out Output
	seen := map[clustermesh.Origin]bool{}
	var entries []Entry
	for _, o := range w.Origins {
		if e, ok := r.entries[o]; ok && !seen[o] && r.early(e) == 0 {
			seen[o] = true
			entries = append(entries, e)
		}
	}
	r.sendSnapshots(&out, from, entries)
	return out
}

// sendSnapshots sends records in chunks, the smallest first, so that one large record does not hold
// up the rest.
func (r *Replica) sendSnapshots(out *Output, to Peer, entries []Entry) {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.size - b.size })
	for len(entries) > 0 {
		n, size := 0, 0
		for n < len(entries) && (n == 0 || size+entries[n].Size() <= chunkBytes) {
			size += entries[n].Size()
			n++
		}
		out.send(to, r.deflate(to, &Snapshot{Entries: entries[:n:n]}))
		entries = entries[n:]
	}
}

// digest returns a checksum of the versions held, per cluster.
func (r *Replica) digest() *Digest {
	d := &Digest{Sender: r.sender()}
	for _, c := range slices.Sorted(maps.Keys(r.digests)) {
		d.Clusters = append(d.Clusters, ClusterSum{Cluster: c, Sum: r.sum(c)})
	}
	return d
}

// sum returns the checksum of what this replica offers of a cluster.
func (r *Replica) sum(c clustermesh.ClusterName) sum {
	s := r.digests[c]
	if own, held := r.entries[r.self]; held && c == r.self.Cluster && r.hidden(r.self) {
		s.toggle(own)
	}
	return s
}

func (r *Replica) receiveDigest(from Peer, d *Digest) Output {
	var out Output
	theirs := map[clustermesh.ClusterName]sum{}
	for _, c := range d.Clusters {
		theirs[c.Cluster] = c.Sum
	}
	differ := map[clustermesh.ClusterName]bool{}
	for c, s := range theirs {
		if r.sum(c) != s && clustermesh.CheckName(string(c)) == nil {
			differ[c] = true
		}
	}
	for c := range r.digests {
		if theirs[c] != r.sum(c) {
			differ[c] = true
		}
	}
	if len(differ) == 0 {
		out.send(from, &Agree{r.sender()})
		r.answered(d.Sender, true)
		r.agreed(from, d.Sender)
		return out
	}
	out.send(from, r.vector(differ))
	return out
}

// offers reports whether others are told of an entry, and given it: not if they would refuse it, because
// it is from the future, or is of this node and that has left.
func (r *Replica) offers(e Entry) bool { return !r.hidden(e.Record.Origin) && r.early(e) == 0 }

func (r *Replica) vector(clusters map[clustermesh.ClusterName]bool) *Vector {
	offers := map[clustermesh.ClusterName][]Offer{}
	for _, e := range r.entriesOf(clusters) {
		if c := e.Record.Origin.Cluster; r.offers(e) {
			offers[c] = append(offers[c], Offer{Origin: e.Record.Origin, Version: e.version})
		}
	}
	v := &Vector{Sender: r.sender()}
	for _, c := range slices.Sorted(maps.Keys(clusters)) {
		v.Clusters = append(v.Clusters, ClusterVector{Cluster: c, Offers: offers[c]})
	}
	return v
}

// receiveVector completes an exchange: it sends or announces what is newer here, and asks for what
// is newer there.
func (r *Replica) receiveVector(from Peer, v *Vector, doubted bool) Output {
	var out Output
	var want, missing []clustermesh.Origin
	var give []Entry
	theirs := map[clustermesh.Origin]Version{}
	clusters := map[clustermesh.ClusterName]bool{}
	for _, c := range v.Clusters {
		clusters[c.Cluster] = true
		for _, offer := range c.Offers {
			theirs[offer.Origin] = offer.Version
			if !r.lacks(offer, doubted, &out) {
				continue
			}
			missing = append(missing, offer.Origin)
			if r.asks(from, offer, doubted) { // not on its way already
				want = append(want, offer.Origin)
			}
		}
	}
	r.answered(v.Sender, !clusters[r.self.Cluster] || theirs[r.self].Epoch >= r.writer.epoch)
	for _, e := range r.entriesOf(clusters) {
		if o := e.Record.Origin; r.offers(e) && e.version.Compare(theirs[o]) > 0 {
			give = append(give, e)
		}
	}
	r.give(&out, from, give)
	if len(want) > 0 {
		out.send(from, &Want{want})
	}
	switch {
	case r.synced:
	case doubted: // what it offers need not exist, so nothing waits for it
		r.agreed(from, v.Sender)
	default:
		r.exchanging, r.with, r.said = true, from, v.Sender
		clear(r.missing)
		for _, o := range missing {
			r.missing[o] = true
		}
		r.settle()
	}
	return out
}

// giveBytes is the most bytes of records that are sent to a peer unasked.
const giveBytes = 64 << 10

// give sends the records that a peer lacks. A newcomer lacks everything, and all its peers find
// that out at the same moment. So more than giveBytes is only announced, and the newcomer asks one
// peer for it.
func (r *Replica) give(out *Output, to Peer, entries []Entry) {
	size := 0
	for _, e := range entries {
		size += e.size
	}
	switch {
	case len(entries) == 0:
	case size <= giveBytes:
		r.sendSnapshots(out, to, entries)
	default:
		out.send(to, &Announce{offersOf(entries)})
	}
}

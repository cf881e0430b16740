package replica

import (
	"fmt"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
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
	out := r.receive(from, m)
	r.askNext(&out)
	return out
}

func (r *Replica) receive(from Peer, m Message) (out Output) {
	d, doubts := m.(doubted)
	if doubts {
		m = d.Message
	}
	switch m.(type) {
	case *Want: // each record is sent once, so a believed peer can ask for as many as it likes
		if doubts && !r.answers(from, doubts) {
			return Output{}
		}
	case *Digest, *Vector, *Root, *Sums, *Buckets, *Listing:
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
		r.hellos[from] = greeting{Hello: m}
		if r.answers(from, doubts) {
			r.meet(&out, from)
		}
	case *Announce:
		return r.receiveAnnounce(from, m, doubts)
	case *Want:
		return r.receiveWant(from, m)
	case *Digest:
		return r.receiveDigest(from, m)
	case *Vector:
		return r.receiveVector(from, m, doubts)
	case *Root:
		return r.receiveRoot(from, m)
	case *Sums:
		return r.receiveSums(from, m)
	case *Buckets:
		return r.receiveBuckets(from, m)
	case *Listing:
		return r.receiveListing(from, m, doubts)
	case *Agree:
		r.answered(m.Sender, true)
		r.agreed(from, m.Sender)
	}
	return out
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
			r.gotOld(o)
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
			r.servedOf(from).wrong++
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
	r.spread(&out, from, false, pushed)
	r.spread(&out, from, true, repaired)
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

// gotOld notes that a believed peer sent what it has of a record. If that is not what another one
// offers, that one is still to be asked.
func (r *Replica) gotOld(o clustermesh.Origin) {
	if r.asked[o].other == (Peer{}) {
		delete(r.asked, o)
	}
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
	r.want(&out, from, want)
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
// up the rest; and none that the peer was sent since the last tick.
func (r *Replica) sendSnapshots(out *Output, to Peer, entries []Entry) {
	entries = r.unsent(to, entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.size - b.size })
	for len(entries) > 0 {
		n, size := 0, 0
		for n < len(entries) && (n == 0 || size+entries[n].Size() <= chunkBytes) {
			size += entries[n].Size()
			n++
		}
		out.send(to, r.deflate(to, &Snapshot{Entries: entries[:n:n]}, size))
		entries = entries[n:]
	}
}

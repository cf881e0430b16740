package replica

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
)

// Bounds on what peers that may not be who they say can cause between two ticks: for how many origins
// they are asked, and how many of their questions are answered, of all and of one.
const (
	maxDoubtedAsks    = 1024
	maxDoubtedAnswers = 64
	maxDoubtedOfOne   = 8
)

// ask is what was asked for since the last tick, and whom. An offer proves nothing: the version can be
// one that does not exist. So a doubted peer is second choice, and another peer that offers the record is
// remembered: it is asked after a moment if nothing came.
type ask struct {
	version Version
	from    Peer
	doubted bool
	other   Peer // zero if no other peer offers it
	older   Version
}

// asks reports whether a peer shall be asked for the version of a record that it offers.
func (r *Replica) asks(from Peer, offer Offer, doubted bool) bool {
	now, any := r.asked[offer.Origin]
	next := ask{version: offer.Version, from: from, doubted: doubted}
	_, held := r.entries[offer.Origin]
	of := r.servedOf(from)
	switch {
	case !any && !held && of.asks >= maxNewAsks:
		return false
	case !any && doubted && r.doubts.asks >= maxDoubtedAsks, any && doubted && !now.doubted:
		return false
	case any && now.doubted == doubted && offer.Version.Compare(now.version) <= 0:
		if from != now.from && now.older.Compare(offer.Version) < 0 {
			now.other, now.older = from, offer.Version
			r.asked[offer.Origin] = now
			r.others.put(offer.Origin, true)
		}
		return false
	case any && now.doubted == doubted:
		next.other, next.older = now.other, now.older
	}
	if doubted {
		r.doubts.asks++
	}
	if !any && !held {
		of.asks++
	}
	r.asked[offer.Origin] = next
	return true
}

// pulseAsked asks others for what did not come since the last pulse. A newcomer, which asks for much at
// once, waits until the next tick.
func (r *Replica) pulseAsked() Output {
	due := map[clustermesh.Origin]ask{}
	for o := range r.others.turn() {
		if a, any := r.asked[o]; any && a.other != (Peer{}) && r.synced {
			due[o] = a
			delete(r.asked, o)
		}
	}
	return r.askOthers(due)
}

// tickAsked asks others for what did not come, and begins to count again.
func (r *Replica) tickAsked() Output {
	due := r.asked
	r.asked, r.doubts = map[clustermesh.Origin]ask{}, doubts{}
	clear(r.served)
	return r.askOthers(due)
}

// askOthers asks the other peers that offer records.
func (r *Replica) askOthers(due map[clustermesh.Origin]ask) (out Output) {
	want := map[Peer][]clustermesh.Origin{}
	for _, o := range slices.SortedFunc(maps.Keys(due), clustermesh.Origin.Compare) {
		if a := due[o]; a.other != (Peer{}) && r.members[a.other] {
			offer := Offer{Origin: o, Version: a.older}
			if r.lacks(offer, a.doubted, &out) && r.asks(a.other, offer, a.doubted) {
				want[a.other] = append(want[a.other], o)
			}
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(want), clustermesh.Origin.Compare) {
		r.want(&out, p, want[p])
	}
	return out
}

// want asks a peer for the records of some origins.
func (r *Replica) want(out *Output, from Peer, origins []clustermesh.Origin) {
	if len(origins) > 0 {
		out.send(from, r.deflate(from, &Want{origins}, originBytes*len(origins)))
	}
}

// originBytes and versionBytes are about how many bytes an origin and a version have on the wire.
const originBytes, versionBytes = 24, 20

// doubts counts what all doubted peers together caused since the last tick.
type doubts struct{ asks, answers int }

// answers reports whether a question of a peer is answered now.
func (r *Replica) answers(p Peer, doubted bool) bool {
	of := r.servedOf(p)
	if !doubted {
		of.answers++
		return of.answers <= maxAnswers
	}
	if r.doubts.answers >= maxDoubtedAnswers || of.answers >= maxDoubtedOfOne {
		return false
	}
	r.doubts.answers++
	of.answers++
	return true
}

package replica

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
)

// Hint is an Offer of a record of which the receiver should hold an earlier version, and soon this
// one. Of identifies the origin; see identify. Sum is the first half of the version's.
type Hint struct {
	_   struct{} `cbor:",toarray"`
	Of  uint64
	Sum uint32
}

func (v Version) half() uint32 { return uint32(v.Sum >> 32) }

// delayed are origins, or peers, that wait for the pulse after the next one: for as long as that lasts at
// least, and twice as long at most.
type delayed[V any] struct{ fresh, due map[clustermesh.Origin]V }

func (d *delayed[V]) put(o clustermesh.Origin, v V) {
	if d.fresh == nil {
		d.fresh = map[clustermesh.Origin]V{}
	}
	d.fresh[o] = v
}

// turn returns those whose time has come.
func (d *delayed[V]) turn() map[clustermesh.Origin]V {
	due := d.due
	d.due, d.fresh = d.fresh, nil
	return due
}

func (d *delayed[V]) any() bool { return len(d.fresh)+len(d.due) > 0 }

// hint has a neighbour told after a moment what is held then of the records that changed.
func (r *Replica) hint(to Peer, all []change) {
	of := r.hints.fresh[to]
	if of == nil {
		of = map[clustermesh.Origin]bool{}
		r.hints.put(to, of)
	}
	for _, c := range all {
		of[c.now.Record.Origin] = true
	}
}

// Waits reports whether there is anything for Pulse to do.
func (r *Replica) Waits() bool { return r.hints.any() || r.others.any() }

// Pulse sends what has waited since the last time, and asks others for what has not come since then. It
// is called tens of milliseconds after that, or after Waits became true.
func (r *Replica) Pulse() (out Output) {
	out = r.pulseAsked()
	due := r.hints.turn()
	for _, p := range slices.SortedFunc(maps.Keys(due), clustermesh.Origin.Compare) {
		if !r.IsNeighbour(p) {
			continue
		}
		m := &Announce{}
		for _, o := range slices.SortedFunc(maps.Keys(due[p]), clustermesh.Origin.Compare) {
			switch e, held := r.entries[o]; {
			case !held:
			case r.understands(p, SpeaksHints) && e.version.Count > 1:
				m.Hints = append(m.Hints, Hint{Of: identify(o), Sum: e.version.half()})
			default:
				m.Offers = append(m.Offers, Offer{Origin: o, Version: e.version})
			}
		}
		out.send(p, m)
	}
	return out
}

// receiveAnnounce asks for what is newer at a peer.
func (r *Replica) receiveAnnounce(from Peer, m *Announce, doubted bool) (out Output) {
	offers := m.Offers
	for _, h := range m.Hints {
		o, known := r.origins[h.Of]
		switch held := r.entries[o].version; {
		case known && h.Sum == held.half():
		case known: // the next one, as far as is known here
			offers = append(offers, Offer{Origin: o, Version: Version{Epoch: held.Epoch, Count: held.Count + 1}})
		case r.synced && !r.audit.asked:
			r.audit.asked = true
			out.send(from, r.open(from))
		}
	}
	out.add(r.receiveOffers(from, offers, doubted))
	return out
}

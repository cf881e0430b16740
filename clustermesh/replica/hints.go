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

// hints are the origins of which neighbours are told after a moment what is held then: by that time
// they should have it by another way, so that they need not ask.
type hints struct {
	fresh, due map[Peer]map[clustermesh.Origin]bool
}

func (h *hints) add(to Peer, all []change) {
	if h.fresh == nil {
		h.fresh = map[Peer]map[clustermesh.Origin]bool{}
	}
	if h.fresh[to] == nil {
		h.fresh[to] = map[clustermesh.Origin]bool{}
	}
	for _, c := range all {
		h.fresh[to][c.now.Record.Origin] = true
	}
}

// Waits reports whether there is anything for Pulse to do.
func (r *Replica) Waits() bool {
	return len(r.hints.fresh)+len(r.hints.due)+len(r.others.fresh)+len(r.others.due) > 0
}

// Pulse sends what has waited since the last time, and asks others for what has not come since then. It
// is called tens of milliseconds after that, or after Waits became true.
func (r *Replica) Pulse() (out Output) {
	out = r.pulseAsked()
	due := r.hints.due
	r.hints.due, r.hints.fresh = r.hints.fresh, nil
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

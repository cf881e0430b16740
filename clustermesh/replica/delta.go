package replica

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica/splice"
	"strait.io/strait/clustermesh/topology"
)

// Delta carries records as what differs in their bytes from an earlier version, which most peers
// hold. Who holds another one asks for the whole record. It needs no trust: the result is what the
// writer sealed, or is refused.
type Delta struct {
	Items []DeltaItem `cbor:"1,keyasint"`
}

// DeltaItem is one record of a Delta.
type DeltaItem struct {
	_ struct{} `cbor:",toarray"`
	// Of identifies the origin; see identify.
	Of      uint64
	Version Version
	// Base is the Sum of the version that it differs from.
	Base uint64
	// Record and Seal are differences, as package splice makes them.
	Record, Seal []byte
}

// identify returns the first 8 bytes of the SHA-256 of an origin, which can have 300 bytes. It is
// the same on all streams, so that a Delta is encoded once for all peers, and a name
// with the hash of another one cannot be found.
func identify(o clustermesh.Origin) uint64 {
	hash := sha256.Sum256([]byte(o.String()))
	return binary.BigEndian.Uint64(hash[:])
}

// change is a record that is new here, and what was held before; before is empty if there was
// nothing.
type change struct {
	now, before Entry
	// item is what came, if that says what differs between the two; otherwise it is empty.
	item DeltaItem
}

// news returns the records that are new.
func news(all []change) []Entry {
	out := make([]Entry, len(all))
	for i, c := range all {
		out[i] = c.now
	}
	return out
}

// delta returns what differs, if that is shorter than the record. What came is passed on as it is,
// if it leads from what was held to exactly this.
func (c change) delta() (item DeltaItem, shorter bool) {
	before, now := c.before, c.now
	if before.version == (Version{}) {
		return item, false
	}
	if item = c.item; item.Base != before.version.Sum || item.Version != now.version {
		base, err1 := before.Bytes()
		want, err2 := now.Bytes()
		if err1 != nil || err2 != nil {
			return item, false
		}
		item = DeltaItem{
			Of: identify(now.Record.Origin), Version: now.version, Base: before.version.Sum,
			Record: splice.Diff(base, want), Seal: splice.Diff(before.seal, now.seal),
		}
	}
	return item, len(item.Record)+len(item.Seal) < now.Size()
}

// deltas returns what differs of the records of which that is shorter, and the others as a whole.
func deltas(all []change) (d *Delta, whole *Snapshot) {
	d, whole = &Delta{}, &Snapshot{}
	for _, c := range all {
		if item, shorter := c.delta(); shorter {
			d.Items = append(d.Items, item)
		} else {
			whole.Entries = append(whole.Entries, c.now)
		}
	}
	return d, whole
}

// sendNews sends new records to peers: what differs to those that understand that.
func (r *Replica) sendNews(out *Output, to []Peer, all []change) {
	var able, others []Peer
	for _, p := range to {
		if r.understands(p, SpeaksDeltas) {
			able = append(able, p)
		} else {
			others = append(others, p)
		}
	}
	if len(others) > 0 {
		whole := &Snapshot{Entries: news(all)}
		for _, p := range others {
			out.send(p, whole)
		}
	}
	if len(able) == 0 {
		return
	}
	d, whole := deltas(all)
	for _, p := range able {
		if len(d.Items) > 0 {
			out.send(p, d)
		}
		if len(whole.Entries) > 0 {
			out.send(p, whole)
		}
	}
}

// receiveDelta makes records of what differs, and handles them as a Snapshot. It asks for those of
// which another version is held. An origin of which nothing is held is one that an exchange brings,
// which is opened once a tick.
func (r *Replica) receiveDelta(from Peer, d *Delta, doubted bool) (out Output) {
	s, faults := &Snapshot{items: map[clustermesh.Origin]DeltaItem{}}, maxFaults
	of := r.servedOf(from)
	var missing []Offer
	for _, item := range d.Items {
		o, any := r.origins[item.Of]
		held := r.entries[o]
		_, twice := s.items[o]
		switch {
		case !any && r.synced && !r.audit.asked:
			r.audit.asked = true
			out.send(from, r.open(from))
		case !any:
		case item.Version == held.version:
			if !doubted {
				r.gotOld(o)
			}
		case held.version.Sum != item.Base, doubted, twice, of.wrong >= maxWrong:
			// To apply it costs a thousand times what it costs to send one that is wrong.
			missing = append(missing, Offer{Origin: o, Version: item.Version})
		default:
			e, err := item.patch(held, &faults)
			if err != nil || e.version != item.Version || e.Record.Origin != o {
				of.wrong++
				missing = append(missing, Offer{Origin: o, Version: item.Version}) // the difference is wrong
				continue
			}
			s.Entries = append(s.Entries, e)
			s.items[o] = item
		}
	}
	out.add(r.receiveSnapshot(from, s, doubted))
	out.add(r.receiveOffers(from, missing, doubted))
	return out
}

// patch returns the record that differs by an item from what is held.
func (i DeltaItem) patch(held Entry, faults *int) (Entry, error) {
	base, err := held.Bytes()
	if err != nil {
		return Entry{}, err
	}
	raw, err := splice.Patch(base, i.Record, MaxRecord)
	if err != nil {
		return Entry{}, err
	}
	e, err := decodeEntry(raw, faults)
	if err != nil {
		return Entry{}, err
	}
	e.seal, err = splice.Patch(held.seal, i.Seal, maxSeal)
	return e, err
}

// spread sends news to the neighbours that the topology chooses. Records that go the same way go
// together.
func (r *Replica) spread(out *Output, from Peer, repaired bool, all []change) {
	var to topology.Spread
	begin := 0
	for i, c := range all {
		next := r.ways.Spread(topology.News{From: from, Writer: c.now.Record.Origin, Repaired: repaired}, r.peers.list)
		if i > 0 && (!slices.Equal(next.Records, to.Records) || !slices.Equal(next.Offers, to.Offers) || !slices.Equal(next.Hints, to.Hints)) {
			r.sendTo(out, to, all[begin:i])
			begin = i
		}
		to = next
	}
	if len(all) > 0 {
		r.sendTo(out, to, all[begin:])
	}
}

func (r *Replica) sendTo(out *Output, to topology.Spread, all []change) {
	r.sendNews(out, to.Records, all)
	for _, p := range to.Hints {
		r.hint(p, all)
	}
	if len(to.Offers) == 0 {
		return
	}
	offer := &Announce{Offers: offersOf(news(all))}
	for _, p := range to.Offers {
		out.send(p, offer)
	}
}

// publishNews sends a record that was written here.
func (r *Replica) publishNews(c change) Output {
	out := Output{Changed: []clustermesh.Origin{c.now.Record.Origin}}
	r.spread(&out, Peer{}, false, []change{c})
	return out
}

func offersOf(entries []Entry) []Offer {
	offers := make([]Offer, len(entries))
	for i, e := range entries {
		offers[i] = Offer{Origin: e.Record.Origin, Version: e.version}
	}
	return offers
}

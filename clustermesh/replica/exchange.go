package replica

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
)

// digest returns a checksum of the versions held, per cluster.
func (r *Replica) digest() *Digest {
	d := &Digest{Sender: r.sender()}
	for _, c := range slices.Sorted(maps.Keys(r.digests)) {
		d.Clusters = append(d.Clusters, ClusterSum{Cluster: c, Sum: r.digestOf(c).all})
	}
	return d
}

func (r *Replica) receiveDigest(from Peer, d *Digest) Output {
	var out Output
	theirs := map[clustermesh.ClusterName]sum{}
	for _, c := range d.Clusters {
		theirs[c.Cluster] = c.Sum
	}
	differ := map[clustermesh.ClusterName]uint16{}
	for c, s := range theirs {
		if r.digestOf(c).all != s && clustermesh.CheckName(string(c)) == nil {
			differ[c] = everything
		}
	}
	for c := range r.digests {
		if theirs[c] != r.digestOf(c).all {
			differ[c] = everything
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

// offers reports whether others are told of an entry, and given it: not if they would refuse it,
// because it is from the future, or is of this node and that has left.
func (r *Replica) offers(e Entry) bool { return !r.hidden(e.Record.Origin) && r.early(e) == 0 }

func (r *Replica) vector(clusters map[clustermesh.ClusterName]uint16) *Vector {
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

// list is what a peer holds of some clusters, in some buckets of them.
type list struct {
	in     map[clustermesh.ClusterName]uint16 // a bit for each bucket
	offers []Offer
	Sender
}

// everything has a bit for each bucket.
const everything = 1<<buckets - 1

// has reports whether a list would have an origin if its sender held anything of it.
func (l list) has(o clustermesh.Origin) bool { return l.in[o.Cluster]>>bucketOf(o)&1 == 1 }

// receiveVector completes an exchange.
func (r *Replica) receiveVector(from Peer, v *Vector, doubted bool) Output {
	l := list{in: map[clustermesh.ClusterName]uint16{}, Sender: v.Sender}
	for _, c := range v.Clusters {
		l.in[c.Cluster] = everything
		l.offers = append(l.offers, c.Offers...)
	}
	return r.compare(from, l, doubted)
}

// compare completes an exchange: it sends or announces what is newer here, and asks for what is
// newer there.
func (r *Replica) compare(from Peer, l list, doubted bool) Output {
	var out Output
	var want, missing []clustermesh.Origin
	var give []Entry
	theirs := map[clustermesh.Origin]Version{}
	for _, offer := range l.offers {
		theirs[offer.Origin] = offer.Version
		if !r.lacks(offer, doubted, &out) {
			continue
		}
		missing = append(missing, offer.Origin)
		if r.asks(from, offer, doubted) { // not on its way already
			want = append(want, offer.Origin)
		}
	}
	r.answered(l.Sender, !l.has(r.self) || theirs[r.self].Epoch >= r.writer.epoch)
	for _, e := range r.entriesOf(l.in) {
		if o := e.Record.Origin; l.has(o) && r.offers(e) && e.version.Compare(theirs[o]) > 0 {
			give = append(give, e)
		}
	}
	r.give(&out, from, give)
	r.want(&out, from, want)
	switch {
	case r.synced:
	case doubted: // what it offers need not exist, so nothing waits for it
		r.agreed(from, l.Sender)
	default:
		r.exchanging, r.with, r.said = true, from, l.Sender
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
		out.send(to, &Announce{Offers: offersOf(entries)})
	}
}

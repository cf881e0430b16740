package replica

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
)

// An exchange with a peer that understands SpeaksRepair finds out step by step what differs, so
// that it costs little however many records there are: Root, Sums, Buckets, Listing. The first is
// opened with, and each is the answer to the one before. The last is of the records of few origins,
// and completes the exchange like a Vector.

// Root opens an exchange as Digest does. The answer is Agree, or Sums.
type Root struct {
	Sum [16]byte `cbor:"1,keyasint"`
	Sender
}

// Sums has a checksum of each cluster of which the sender holds something. The answer is Buckets.
type Sums struct {
	Of []ClusterHash `cbor:"1,keyasint"`
}

// ClusterHash is the first 6 bytes of the hash of a cluster's name, and of its checksum. On the
// wire it is a byte string.
type ClusterHash [12]byte

// Buckets has the checksums of the buckets of clusters that differ. The answer is a Listing.
type Buckets struct {
	Of []ClusterBuckets `cbor:"1,keyasint"`
}

// ClusterBuckets are the first 6 bytes of the checksum of each bucket. Where the sender holds
// nothing of a cluster, there is only what Sums called it.
type ClusterBuckets struct {
	_       struct{} `cbor:",toarray"`
	Cluster clustermesh.ClusterName
	Hash    []byte
	Sums    []byte
}

// Listing lists the versions that the sender holds in buckets that differ.
type Listing struct {
	Of []ClusterListing `cbor:"1,keyasint"`
	Sender
}

// ClusterListing is of the buckets whose bits are set.
type ClusterListing struct {
	_       struct{} `cbor:",toarray"`
	Cluster clustermesh.ClusterName
	Buckets uint16
	Nodes   []NodeVersion
}

// NodeVersion is the version of a node's record, or of the cluster's if the name is empty.
type NodeVersion struct {
	_       struct{} `cbor:",toarray"`
	Node    clustermesh.NodeName
	Version Version
}

// short is how many bytes of a hash are sent. Where two that differ look the same, the next change
// repairs it.
const short = 6

// hashOf returns what Sums has of a cluster.
func (r *Replica) hashOf(c clustermesh.ClusterName) (h ClusterHash) {
	var name [8]byte
	binary.BigEndian.PutUint64(name[:], identify(clustermesh.Origin{Cluster: c}))
	copy(h[:short], name[:])
	all := r.digestOf(c).all
	copy(h[short:], all[:])
	return h
}

// open returns what opens an exchange with a peer.
func (r *Replica) open(p Peer) Message {
	if r.understands(p, SpeaksRepair) {
		return &Root{Sum: r.root(), Sender: r.sender()}
	}
	return r.digest()
}

func (r *Replica) receiveRoot(from Peer, m *Root) (out Output) {
	if m.Sum == r.root() {
		out.send(from, &Agree{r.sender()})
		r.answered(m.Sender, true)
		r.agreed(from, m.Sender)
		return out
	}
	out.send(from, r.sums())
	return out
}

func (r *Replica) sums() *Sums {
	s := &Sums{}
	for _, c := range slices.Sorted(maps.Keys(r.digests)) {
		s.Of = append(s.Of, r.hashOf(c))
	}
	return s
}

// maxUnknown bounds of how many clusters one peer is asked at once of which nothing is held here.
const maxUnknown = 4096

func (r *Replica) receiveSums(from Peer, s *Sums) (out Output) {
	theirs := map[[short]byte]ClusterHash{}
	for _, h := range s.Of {
		theirs[[short]byte(h[:])] = h
	}
	answer := &Buckets{}
	for _, c := range slices.Sorted(maps.Keys(r.digests)) {
		mine := r.hashOf(c)
		id := [short]byte(mine[:])
		if theirs[id] != mine {
			answer.Of = append(answer.Of, r.bucketsOf(c))
		}
		delete(theirs, id)
	}
	unknown := slices.SortedFunc(maps.Keys(theirs), func(a, b [short]byte) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range unknown[:min(len(unknown), maxUnknown)] {
		answer.Of = append(answer.Of, ClusterBuckets{Hash: id[:]})
	}
	out.send(from, answer)
	return out
}

func (r *Replica) bucketsOf(c clustermesh.ClusterName) ClusterBuckets {
	b := ClusterBuckets{Cluster: c, Sums: make([]byte, 0, buckets*short)}
	d := r.digestOf(c)
	for _, s := range d.in {
		b.Sums = append(b.Sums, s[:short]...)
	}
	return b
}

func (r *Replica) receiveBuckets(from Peer, m *Buckets) (out Output) {
	named := map[[short]byte]clustermesh.ClusterName{}
	for c := range r.digests {
		h := r.hashOf(c)
		named[[short]byte(h[:])] = c
	}
	differ := map[clustermesh.ClusterName]uint16{}
	for _, b := range m.Of {
		switch {
		case len(b.Sums) == buckets*short && clustermesh.CheckName(string(b.Cluster)) == nil:
			differ[b.Cluster] = r.differ(b)
		case len(b.Sums) == 0 && len(b.Hash) == short:
			if c, held := named[[short]byte(b.Hash)]; held {
				differ[c] = everything
			}
		}
	}
	l, count := r.listing(differ)
	out.send(from, r.deflate(from, l, (originBytes+versionBytes)*count))
	return out
}

// differ returns a bit for each bucket that differs.
func (r *Replica) differ(theirs ClusterBuckets) (in uint16) {
	mine := r.bucketsOf(theirs.Cluster)
	for i := range buckets {
		at := i * short
		if !bytes.Equal(mine.Sums[at:at+short], theirs.Sums[at:at+short]) {
			in |= 1 << i
		}
	}
	return in
}

// listing returns what is held in buckets, and of how many origins.
func (r *Replica) listing(in map[clustermesh.ClusterName]uint16) (m *Listing, count int) {
	l := list{in: in}
	nodes := map[clustermesh.ClusterName][]NodeVersion{}
	for _, e := range r.entriesOf(in) {
		if o := e.Record.Origin; l.has(o) && r.offers(e) {
			count++
			nodes[o.Cluster] = append(nodes[o.Cluster], NodeVersion{Node: o.Node, Version: e.version})
		}
	}
	m = &Listing{Sender: r.sender()}
	for _, c := range slices.Sorted(maps.Keys(in)) {
		m.Of = append(m.Of, ClusterListing{Cluster: c, Buckets: in[c], Nodes: nodes[c]})
	}
	return m, count
}

// receiveListing completes an exchange.
func (r *Replica) receiveListing(from Peer, m *Listing, doubted bool) Output {
	l := list{in: map[clustermesh.ClusterName]uint16{}, Sender: m.Sender}
	for _, c := range m.Of {
		l.in[c.Cluster] |= c.Buckets
		for _, n := range c.Nodes {
			l.offers = append(l.offers, Offer{Origin: clustermesh.Origin{Cluster: c.Cluster, Node: n.Node}, Version: n.Version})
		}
	}
	return r.compare(from, l, doubted)
}

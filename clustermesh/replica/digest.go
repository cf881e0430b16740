package replica

import (
	"crypto/sha256"
	"encoding/binary"

	"strait.io/strait/clustermesh"
)

// sum is the XOR of the hashes of versions, so it can be updated record by record.
type sum [16]byte

func (s *sum) add(other sum) {
	for i := range s {
		s[i] ^= other[i]
	}
}

// buckets is how many parts the records of a cluster are compared in, by the hash of their origins.
const buckets = 16

// bucketOf returns the bucket of an origin.
func bucketOf(o clustermesh.Origin) int { return int(identify(o) % buckets) }

// digest is what is held of a cluster.
type digest struct {
	all sum
	in  [buckets]sum
}

// toggle adds an entry's version, or removes it again.
func (d *digest) toggle(e Entry) {
	var b []byte
	b = append(b, e.Record.Origin.String()...)
	b = append(b, 0)
	b = binary.BigEndian.AppendUint64(b, e.version.Epoch)
	b = binary.BigEndian.AppendUint64(b, e.version.Count)
	b = binary.BigEndian.AppendUint64(b, e.version.Sum)
	hash := sha256.Sum256(b)
	of := sum(hash[:16])
	d.all.add(of)
	d.in[bucketOf(e.Record.Origin)].add(of)
}

// digestOf returns the digest of what this replica offers of a cluster.
func (r *Replica) digestOf(c clustermesh.ClusterName) digest {
	d := r.digests[c]
	if own, held := r.entries[r.self]; held && c == r.self.Cluster && r.hidden(r.self) {
		d.toggle(own)
	}
	return d
}

// root returns one checksum of all that this replica offers.
func (r *Replica) root() (all sum) {
	for c := range r.digests {
		all.add(r.digestOf(c).all)
	}
	return all
}

package replica

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
)

// MaxRecord bounds one record on the wire, in bytes.
const MaxRecord = 4 << 20

// Version orders the records of one origin: by stamp, then by a checksum of the record. The
// checksum decides only between two writers that used the same stamp (two leaders, a cloned
// machine). Without it, replicas that hold different records with the same stamp would believe that
// they agree.
type Version struct {
	_     struct{} `cbor:",toarray"`
	Epoch uint64
	Count uint64
	Sum   uint64
}

// Compare orders by epoch, then count, then checksum.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Epoch, w.Epoch), cmp.Compare(v.Count, w.Count), cmp.Compare(v.Sum, w.Sum))
}

// Entry is a record with its wire form. In transit it has the bytes that the writer sent, so that
// they are passed on unchanged. A held entry (see Held) keeps the bytes only if encoding the record
// again would not make the same bytes, so that fields which this build does not know are kept and
// passed on. Keeping the bytes of every record would take half as much memory again as the records.
type Entry struct {
	Record  clustermesh.Record
	raw     []byte // the bytes; nil if the entry is held and whole
	whole   bool   // encoding Record makes exactly raw
	size    int    // of the bytes
	version Version
	// seal proves who wrote the bytes; empty if the writer does not sign. It is no part of the
	// version, and replicas do not compare it.
	seal []byte
}

// maxSeal bounds the seal of one record on the wire, in bytes.
const maxSeal = 128 << 10

// Bytes returns the bytes that the writer sent.
func (e Entry) Bytes() ([]byte, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	return encode(nil, e.Record, e.size)
}

// Seal returns what proves who wrote the bytes; empty if there is no proof.
func (e Entry) Seal() []byte { return e.seal }

// Version returns the version of the record.
func (e Entry) Version() Version { return e.version }

// Sealed returns the entry with a seal.
func (e Entry) Sealed(seal []byte) Entry {
	e.seal = seal
	return e
}

// NewEntry encodes a record that this node writes, and leaves out what no node could use. The
// record must not be changed afterwards.
func NewEntry(rec clustermesh.Record) (Entry, error) {
	if err := validate(rec); err != nil {
		return Entry{}, err
	}
	rec.Content, rec.Problems = record.Usable(rec.Origin, rec.Content)
	raw, err := encMode.Marshal(rec)
	if err != nil {
		return Entry{}, fmt.Errorf("encode record of %s: %w", rec.Origin, err)
	}
	if len(raw) > MaxRecord {
		return Entry{}, fmt.Errorf("record of %s has %d bytes, more than the limit of %d", rec.Origin, len(raw), MaxRecord)
	}
	e := entry(rec, raw)
	e.whole = true
	return e, nil
}

// entry makes an entry from a record and its bytes.
func entry(rec clustermesh.Record, raw []byte) Entry {
	hash := sha256.Sum256(raw)
	return Entry{Record: rec, raw: raw, size: len(raw), version: Version{
		Epoch: rec.Stamp.Epoch, Count: rec.Stamp.Version, Sum: binary.BigEndian.Uint64(hash[:]),
	}}
}

// decodeEntry reads one record, and leaves out of its content what cannot be used. The bytes that
// are passed on stay complete, so that every replica has the same version, and a newer build can
// use more of it. With an error, the entry is empty if the record cannot be read; if it is only
// invalid, the entry has its origin and version, so that it is not asked for again.
//
// Faults is how many more of the objects may be unusable; it is counted down.
func decodeEntry(raw []byte, faults *int) (Entry, error) {
	if len(raw) > MaxRecord {
		return Entry{}, fmt.Errorf("record has %d bytes, more than the limit of %d", len(raw), MaxRecord)
	}
	if err := dense(raw); err != nil {
		return sparse(raw), fmt.Errorf("measure record: %w", err)
	}
	var rec clustermesh.Record
	if err := decMode.Unmarshal(raw, &rec); err != nil {
		return Entry{}, fmt.Errorf("decode record: %w", err)
	}
	if err := validate(rec); err != nil {
		return entry(rec, raw), err
	}
	var found int
	rec.Content, rec.Problems, found = record.Sift(rec.Origin, rec.Content, *faults)
	if *faults -= found; *faults < 0 {
		*faults = 0
		return entry(clustermesh.Record{Origin: rec.Origin, Stamp: rec.Stamp}, raw), errFaults
	}
	record.Share(&rec.Content)
	e := entry(rec, raw)
	again, err := encode(nil, rec, len(raw))
	e.whole = err == nil && bytes.Equal(again, raw)
	return e, nil
}

// maxFaults is how many of the objects in one message may be unusable. One version that does not understand
// another finds fewer in what it gets at once, or leaves nothing of it anyway.
const maxFaults = 1 << 12

var errFaults = fmt.Errorf("it came with more than %d objects that cannot be used", maxFaults)

// sparse returns the entry of a record that is not decoded, with its origin and version; empty if it has
// none.
func sparse(raw []byte) Entry {
	var rec struct {
		Origin clustermesh.Origin `cbor:"1,keyasint"`
		Stamp  clustermesh.Stamp  `cbor:"2,keyasint"`
	}
	if decMode.Unmarshal(raw, &rec) != nil {
		return Entry{}
	}
	return entry(clustermesh.Record{Origin: rec.Origin, Stamp: rec.Stamp}, raw)
}

// Held returns the entry as it is kept in memory: without its bytes if they can be made again.
func (e Entry) Held() Entry {
	if e.whole {
		e.raw = nil
	}
	return e
}

// wire returns a value that encodes to the bytes that the writer sent.
func (e Entry) wire() any {
	if e.raw != nil {
		return cbor.RawMessage(e.raw)
	}
	return e.Record
}

// Size returns the size of the record and its seal on the wire, in bytes.
func (e Entry) Size() int { return e.size + len(e.seal) }

package replica

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// wireVersion is the version of the envelope. Additions are new fields and new kinds, which older
// builds skip; the version changes only if older builds must not read a message at all.
const wireVersion = 1

// envelope is read with B = cbor.RawMessage, and written with the body itself: encoding the body
// first would copy it into the envelope, and a record can take a megabyte.
type envelope[B any] struct {
	Version uint64 `cbor:"1,keyasint"`
	Kind    Kind   `cbor:"2,keyasint"`
	Body    B      `cbor:"3,keyasint"`
}

// snapshotBody is read with R = cbor.RawMessage, and written with values that encode to the
// records' bytes.
type snapshotBody[R any] struct {
	Records []R `cbor:"1,keyasint"`
	// Seals are those of Records, in the same order. There are none if no record has one.
	Seals [][]byte `cbor:"2,keyasint,omitempty"`
}

var encMode = must(cbor.CoreDetEncOptions().UserBufferEncMode())

// encode appends the encoding of v, of about size bytes, to b. The library's own buffers would stay
// in memory, each as large as the largest value that it encoded.
func encode(b []byte, v any, size int) ([]byte, error) {
	out := bytes.NewBuffer(b)
	out.Grow(size)
	err := encMode.MarshalToBuffer(v, out)
	return out.Bytes(), err
}

// decMode refuses what no build of strait sends, and what could take a lot of memory. Unknown
// fields are allowed.
var decMode = must(cbor.DecOptions{
	DupMapKey:        cbor.DupMapKeyEnforcedAPF,
	MaxNestedLevels:  16,
	MaxArrayElements: 1 << 18,
	MaxMapPairs:      256,
	IndefLength:      cbor.IndefLengthForbidden,
	TagsMd:           cbor.TagsForbidden,
}.DecMode())

// must panics on an error. It is for options that are constants in this file.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Encode returns a message as CBOR, in an envelope with a version.
func Encode(m Message) ([]byte, error) { return Append(nil, m) }

// Append appends what Encode returns to b, so that consecutive messages can reuse one buffer.
func Append(b []byte, m Message) ([]byte, error) {
	if d, ok := m.(*Deflated); ok {
		return appendDeflated(b, d.Message)
	}
	var body any = m
	size := 0
	if s, ok := m.(*Snapshot); ok {
		records, seals, sealed := make([]any, len(s.Entries)), make([][]byte, len(s.Entries)), false
		for i, e := range s.Entries {
			records[i], seals[i] = e.wire(), e.seal
			sealed = sealed || len(e.seal) > 0
			size += e.Size() + 12
		}
		if !sealed {
			seals = nil
		}
		body = snapshotBody[any]{records, seals}
	}
	return appendBody(b, m.Kind(), body, size)
}

// appendBody appends a message with a body of about so many bytes.
func appendBody(b []byte, kind Kind, body any, size int) ([]byte, error) {
	out, err := encode(b, envelope[any]{Version: wireVersion, Kind: kind, Body: body}, size+128)
	if err != nil {
		return nil, fmt.Errorf("encode message of kind %d: %w", kind, err)
	}
	return out, nil
}

// Decode reads what Encode returned, in this build or another. It does not keep b. Each record of a
// Snapshot is validated by itself: an invalid one goes to Rejected and does not stop the others.
func Decode(b []byte) (Message, error) { return decode(b, false) }

// decode is Decode. What was inflated cannot be inflated again.
func decode(b []byte, inflated bool) (Message, error) {
	var env envelope[cbor.RawMessage]
	if err := decMode.Unmarshal(b, &env); err != nil {
		return nil, fmt.Errorf("decode envelope: %w", err)
	}
	if env.Version != wireVersion {
		return nil, fmt.Errorf("decode envelope: version %d, want %d; upgrade the older daemon", env.Version, wireVersion)
	}
	var m Message
	switch env.Kind {
	case KindSnapshot:
		return decodeSnapshot(env.Body)
	case KindAnnounce:
		m = &Announce{}
	case KindWant:
		m = &Want{}
	case KindDigest:
		m = &Digest{}
	case KindVector:
		m = &Vector{}
	case KindAgree:
		m = &Agree{}
	case KindDelta:
		m = &Delta{}
	case KindHello:
		m = &Hello{}
	case KindRoot:
		m = &Root{}
	case KindSums:
		m = &Sums{}
	case KindBuckets:
		m = &Buckets{}
	case KindListing:
		m = &Listing{}
	case KindLinks:
		m = &Links{}
	case KindDeflated:
		if inflated {
			return nil, errors.New("decode message: it is deflated twice")
		}
		return inflate(env.Body)
	default:
		return &Unknown{env.Kind}, nil
	}
	if err := decMode.Unmarshal(env.Body, m); err != nil {
		return nil, fmt.Errorf("decode message of kind %d: %w", env.Kind, err)
	}
	return m, nil
}

func decodeSnapshot(body []byte) (*Snapshot, error) {
	var raw snapshotBody[cbor.RawMessage]
	if err := decMode.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	if n := len(raw.Seals); n > 0 && n != len(raw.Records) {
		return nil, fmt.Errorf("decode snapshot: %d records and %d seals", len(raw.Records), n)
	}
	s, faults := &Snapshot{}, maxFaults
	for i, b := range raw.Records {
		e, err := decodeEntry(b, &faults)
		if len(raw.Seals) > 0 {
			e.seal = raw.Seals[i]
		}
		if err == nil && len(e.seal) > maxSeal {
			err = fmt.Errorf("record of %s: its seal has %d bytes, more than the limit of %d", e.Record.Origin, len(e.seal), maxSeal)
		}
		if err != nil {
			s.Rejected = append(s.Rejected, Rejected{Origin: e.Record.Origin, Version: e.version, Err: err})
			continue
		}
		s.Entries = append(s.Entries, e)
	}
	return s, nil
}

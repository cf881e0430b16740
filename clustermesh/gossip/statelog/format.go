package statelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// magic is the first line of a log.
const magic = "strait state log 1\n"

// Bounds of what is read, and written. They are well above what a clusterset of 10,000 nodes has.
const (
	maxBody = 8 << 20 // bytes of one entry
	maxKey  = 1 << 10 // bytes
	maxKeys = 1 << 20
	maxFile = 1 << 32 // bytes
)

// Op sets the value of a key, or removes the key with its value.
type Op struct {
	Key    string
	Value  []byte
	Remove bool
}

// An entry is a frame (frame.go), whose body is a byte for the kind, the length of the key as a varint, the
// key, and the value.
const (
	kindSet    = 1
	kindRemove = 2
)

// appendOp appends the entry of an Op to b.
func appendOp(b []byte, op Op) ([]byte, error) {
	if len(op.Key) > maxKey || len(op.Value) > maxBody-maxKey-headSize {
		return b, fmt.Errorf("write %q: a key of %d bytes with a value of %d is too large", op.Key, len(op.Key), len(op.Value))
	}
	start := len(b)
	b = append(b, make([]byte, headSize)...)
	kind, value := byte(kindSet), op.Value
	if op.Remove {
		kind, value = kindRemove, nil
	}
	b = append(b, kind)
	b = binary.AppendUvarint(b, uint64(len(op.Key)))
	b = append(b, op.Key...)
	b = append(b, value...)
	return sealFrame(b, start), nil
}

// decodeBody reads the body of an entry. The value shares the memory of b.
func decodeBody(b []byte) (Op, error) {
	if len(b) == 0 || b[0] != kindSet && b[0] != kindRemove {
		return Op{}, errors.New("its kind is unknown")
	}
	size, n := binary.Uvarint(b[1:])
	if n <= 0 || size > maxKey || size > uint64(len(b)-1-n) {
		return Op{}, errors.New("its key is cut off")
	}
	key, value := b[1+n:1+n+int(size)], b[1+n+int(size):]
	op := Op{Key: string(key), Value: value, Remove: b[0] == kindRemove}
	if op.Remove && len(value) > 0 {
		return Op{}, errors.New("it removes a key and has a value")
	}
	return op, nil
}

// decodeEntry reads one whole entry. The value shares the memory of b.
func decodeEntry(b []byte) (Op, error) {
	body, err := openFrame(b)
	if err != nil {
		return Op{}, err
	}
	return decodeBody(body)
}

// ErrNotLog means that a file is not a log, or one of another version.
var ErrNotLog = errors.New("not a state file of this version")

// reader reads entry by entry.
type reader struct{ frames *FrameReader }

// newReader reads the first line. It returns ErrNotLog if that is another.
func newReader(r io.Reader) (*reader, error) {
	frames, err := NewFrameReader(r, magic, maxBody)
	if err != nil {
		return nil, err
	}
	return &reader{frames}, nil
}

// next returns the next entry and its size in bytes; io.EOF after the last, and another error if it is
// damaged. The value is valid until the next call.
func (r *reader) next() (op Op, size int64, err error) {
	body, size, err := r.frames.Next()
	if err != nil {
		return Op{}, 0, err
	}
	op, err = decodeBody(body)
	return op, size, err
}

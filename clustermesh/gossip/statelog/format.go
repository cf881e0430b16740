package statelog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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

// An entry is a head (the length of the body, then a checksum of that length and the body; both 32 bits,
// little-endian) and a body: a byte for the kind, the length of the key as a varint, the key, the value.
const (
	headSize = 8

	kindSet    = 1
	kindRemove = 2
)

// The Castagnoli polynomial has instructions of its own on amd64 and arm64.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(length, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, body)
}

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
	head, body := b[start:start+headSize], b[start+headSize:]
	binary.LittleEndian.PutUint32(head, uint32(len(body)))
	binary.LittleEndian.PutUint32(head[4:], checksum(head[:4], body))
	return b, nil
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
	if len(b) < headSize {
		return Op{}, errCut
	}
	head, body := b[:headSize], b[headSize:]
	if int(binary.LittleEndian.Uint32(head)) != len(body) {
		return Op{}, errCut
	}
	if checksum(head[:4], body) != binary.LittleEndian.Uint32(head[4:]) {
		return Op{}, errSum
	}
	return decodeBody(body)
}

// ErrNotLog means that a file is not a log, or one of another version.
var ErrNotLog = errors.New("not a state file of this version")

// Errors of an entry: it ends early, so that the last write was not completed; or its bytes are others than
// those that were written.
var (
	errCut = errors.New("it is cut off")
	errSum = errors.New("its checksum is wrong")
)

// reader reads entry by entry. Memory is bounded by the largest entry.
type reader struct {
	r     *bufio.Reader
	entry bytes.Buffer
}

// newReader reads the first line. It returns ErrNotLog if that is another.
func newReader(r io.Reader) (*reader, error) {
	b := bufio.NewReader(r)
	line := make([]byte, len(magic))
	if _, err := io.ReadFull(b, line); err != nil && !isEnd(err) {
		return nil, err
	}
	if string(line) != magic {
		return nil, ErrNotLog
	}
	return &reader{r: b}, nil
}

// next returns the next entry and its size in bytes; io.EOF after the last, and another error if it is
// damaged. The value is valid until the next call.
func (r *reader) next() (op Op, size int64, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return Op{}, 0, cut(err)
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > maxBody {
		return Op{}, 0, fmt.Errorf("its length is %d, more than the limit of %d", length, maxBody)
	}
	// Not with one read into length bytes: a wrong length must not take more memory than there are bytes.
	r.entry.Reset()
	r.entry.Write(head[:])
	if _, err := io.CopyN(&r.entry, r.r, int64(length)); err != nil {
		if errors.Is(err, io.EOF) {
			err = errCut
		}
		return Op{}, 0, err
	}
	op, err = decodeEntry(r.entry.Bytes())
	return op, headSize + int64(length), err
}

// cut returns errCut for an end in the middle of an entry, and io.EOF for one before it.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

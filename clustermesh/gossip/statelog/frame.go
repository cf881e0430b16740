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

// A frame is a head (the length of the body, then a checksum of that length and the body; both 32 bits,
// little-endian) and a body.
const headSize = 8

// The Castagnoli polynomial has instructions of its own on amd64 and arm64.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(length, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, body)
}

// AppendFrame appends a frame to b.
func AppendFrame(b, body []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, headSize)...)
	return sealFrame(append(b, body...), start)
}

// sealFrame writes the head of the frame that begins at start and has its body already.
func sealFrame(b []byte, start int) []byte {
	head, body := b[start:start+headSize], b[start+headSize:]
	binary.LittleEndian.PutUint32(head, uint32(len(body)))
	binary.LittleEndian.PutUint32(head[4:], checksum(head[:4], body))
	return b
}

// openFrame returns the body of one whole frame. It shares the memory of b.
func openFrame(b []byte) ([]byte, error) {
	if len(b) < headSize {
		return nil, errCut
	}
	head, body := b[:headSize], b[headSize:]
	if int(binary.LittleEndian.Uint32(head)) != len(body) {
		return nil, errCut
	}
	if checksum(head[:4], body) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errSum
	}
	return body, nil
}

// Errors of a frame: it ends early, so that the last write was not completed; or its bytes are others than
// those that were written.
var (
	errCut = errors.New("it is cut off")
	errSum = errors.New("its checksum is wrong")
)

// FrameReader reads frame by frame. Memory is bounded by the largest frame.
type FrameReader struct {
	r     *bufio.Reader
	most  uint32 // bytes of a body
	frame bytes.Buffer
}

// NewFrameReader makes a reader of a file that begins with a line. It returns ErrNotLog if that is another.
// Most bounds the body of a frame, in bytes.
func NewFrameReader(r io.Reader, first string, most uint32) (*FrameReader, error) {
	b := bufio.NewReader(r)
	line := make([]byte, len(first))
	if _, err := io.ReadFull(b, line); err != nil && !isEnd(err) {
		return nil, err
	}
	if string(line) != first {
		return nil, ErrNotLog
	}
	return &FrameReader{r: b, most: most}, nil
}

// Next returns the body of the next frame and the size of the frame in bytes; io.EOF after the last, and
// another error if it is damaged. The body is valid until the next call.
func (r *FrameReader) Next() (body []byte, size int64, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return nil, 0, cut(err)
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > r.most {
		return nil, 0, fmt.Errorf("its length is %d, more than the limit of %d", length, r.most)
	}
	// Not with one read into length bytes: a wrong length must not take more memory than there are bytes.
	r.frame.Reset()
	r.frame.Write(head[:])
	if _, err := io.CopyN(&r.frame, r.r, int64(length)); err != nil {
		if errors.Is(err, io.EOF) {
			err = errCut
		}
		return nil, 0, err
	}
	body, err = openFrame(r.frame.Bytes())
	return body, headSize + int64(length), err
}

// cut returns errCut for an end in the middle of a frame, and io.EOF for one before it.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

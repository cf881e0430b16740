package history

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Messages are compressed as one stream, so that a name is long only the first time, and flushed one by
// one, so that each is complete without the next. Each takes a frame: a byte for the kind, the length of
// the message as a varint, and its part of the stream.
const (
	kindFirst = 1 // the stream begins here
	kindNext  = 2
)

// maxMessage bounds a message, in bytes: records of up to messageBytes and one more, or an item.
const maxMessage = 16 << 20

// MaxFrame bounds a frame, in bytes.
const MaxFrame = maxMessage + 1<<10

// writer makes frames.
type writer struct {
	flate *flate.Writer
	out   bytes.Buffer
	begun bool
}

// frame returns the frame of a message. It is valid until the next call.
func (w *writer) frame(m message) ([]byte, error) {
	text, err := encMode.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a turn: %w", err)
	}
	if len(text) > maxMessage {
		return nil, fmt.Errorf("encode a turn: %d bytes, more than the limit of %d", len(text), maxMessage)
	}
	w.out.Reset()
	kind := byte(kindNext)
	if !w.begun {
		kind, w.begun = kindFirst, true
		if w.flate == nil {
			w.flate, _ = flate.NewWriter(&w.out, flate.BestSpeed) // the level is valid
		} else {
			w.flate.Reset(&w.out)
		}
	}
	w.out.WriteByte(kind)
	w.out.Write(binary.AppendUvarint(nil, uint64(len(text))))
	if _, err = w.flate.Write(text); err == nil { // a bytes.Buffer takes everything
		err = w.flate.Flush()
	}
	return w.out.Bytes(), err
}

// reader reads frames in order.
type reader struct {
	part  bytes.Buffer // of the stream: what was not read yet
	flate io.ReadCloser
}

var errNoFrame = errors.New("it is no part of a history")

// message returns the message of a frame.
func (r *reader) message(frame []byte) (m message, err error) {
	if len(frame) == 0 || frame[0] != kindFirst && (frame[0] != kindNext || r.flate == nil) {
		return m, errNoFrame
	}
	size, n := binary.Uvarint(frame[1:])
	if n <= 0 || size > maxMessage {
		return m, errNoFrame
	}
	if frame[0] == kindFirst {
		r.part.Reset()
	}
	r.part.Write(frame[1+n:])
	switch {
	case r.flate == nil:
		r.flate = flate.NewReader(&r.part)
	case frame[0] == kindFirst:
		if err := r.flate.(flate.Resetter).Reset(&r.part, nil); err != nil {
			return m, err
		}
	}
	var text bytes.Buffer // grows with what is there, not with what is claimed
	text.Grow(int(min(size, 64<<10)))
	if _, err := io.CopyN(&text, r.flate, int64(size)); err != nil {
		return m, fmt.Errorf("decompress a turn: %w", err)
	}
	if err := decMode.Unmarshal(text.Bytes(), &m); err != nil {
		return m, fmt.Errorf("decode a turn: %w", err)
	}
	return m, nil
}

package stream

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// maxFrame bounds one message on a stream, in bytes.
const maxFrame = 16 << 20

// WriteFrame writes a message, preceded by its length. An empty message is a heartbeat.
func WriteFrame(w *bufio.Writer, message []byte) error {
	if len(message) > maxFrame {
		return fmt.Errorf("write frame: %d bytes, more than the limit of %d", len(message), maxFrame)
	}
	if _, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(message)))); err != nil {
		return err
	}
	_, err := w.Write(message)
	return err
}

// ReadFrame reads what WriteFrame wrote, into buf if that is large enough. It allocates memory only
// as bytes arrive.
func ReadFrame(r io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(head[:]))
	if size > maxFrame {
		return nil, fmt.Errorf("read frame: %d bytes, more than the limit of %d", size, maxFrame)
	}
	return readBytes(r, buf, size)
}

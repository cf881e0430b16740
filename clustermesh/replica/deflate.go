package replica

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
)

const (
	// deflateFrom is the size of records, in bytes, from which a Snapshot that a peer asked for is
	// deflated.
	deflateFrom = 512
	// maxInflated bounds what a deflated message becomes, in bytes, and maxRatio how many times as
	// long as before. Records become about three times as long. A hostile message could become a
	// thousand times as long, at little cost to its sender.
	maxInflated, maxRatio = 16 << 20, 16
)

// Deflated is another message whose encoding is deflated (RFC 1951).
type Deflated struct{ Message }

// deflatedBody is on the wire.
type deflatedBody struct {
	Bytes []byte `cbor:"1,keyasint"`
}

// appendDeflated appends a message that is deflated, or as it is if it would inflate more than a
// receiver allows.
func appendDeflated(b []byte, m Message) ([]byte, error) {
	plain, err := Encode(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("deflate message of kind %d: %w", m.Kind(), err)
	}
	if len(plain) > min(maxInflated, maxRatio*out.Len()) {
		return append(b, plain...), nil
	}
	return appendBody(b, KindDeflated, deflatedBody{out.Bytes()}, out.Len())
}

// inflate decodes a message that was deflated.
func inflate(body []byte) (Message, error) {
	var b deflatedBody
	if err := decMode.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("decode deflated message: %w", err)
	}
	most := min(maxInflated, maxRatio*len(b.Bytes))
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b.Bytes)), int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("inflate message: %w", err)
	}
	if len(plain) > most {
		return nil, fmt.Errorf("inflate message: %d bytes become more than %d", len(b.Bytes), most)
	}
	return decode(plain, true)
}

// deflate returns an answer of about so many bytes as it is to be sent.
func (r *Replica) deflate(to Peer, m Message, size int) Message {
	if size < deflateFrom || !r.understands(to, SpeaksDeltas) {
		return m
	}
	return &Deflated{m}
}

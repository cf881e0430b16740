package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"strait.io/strait/clustermesh"
)

// duplex is a connection that carries messages both ways, whoever dialled it.
type duplex struct {
	conn    net.Conn
	peer    Peer
	dialled bool // by this daemon
	session Session
	began   time.Time
	// believed is whether the peer was believed to be its node when that was asked last. A new
	// machine is not, until its cluster states something about it.
	believed atomic.Bool
	// gone is closed when nothing can be read from it any more.
	gone chan struct{}
}

// ended reports whether nothing can be read from it any more.
func (d *duplex) ended() bool {
	select {
	case <-d.gone:
		return true
	default:
		return false
	}
}

// dialledBy returns which of the two daemons dialled it.
func (d *duplex) dialledBy(self clustermesh.Origin) clustermesh.Origin {
	if d.dialled {
		return self
	}
	return d.peer.Origin
}

// replaces reports whether a connection is to be used in the place of another one with the same
// node. Of two that were dialled at the same time, both daemons choose the one that the lower of
// them dialled. Otherwise the later one counts: who dials it has no other.
func (d *duplex) replaces(old *duplex, self clustermesh.Origin) bool {
	switch {
	case old == nil || old.ended():
		return true
	case d.believed.Load() != old.believed.Load():
		return d.believed.Load()
	case d.peer.Boot == old.peer.Boot && d.dialled != old.dialled && d.began.Sub(old.began).Abs() <= DialTimeout:
		lower := self
		if d.peer.Origin.Compare(self) < 0 {
			lower = d.peer.Origin
		}
		return d.dialledBy(self) == lower
	}
	return d.began.After(old.began)
}

// newDuplex returns a connection on which nothing was read yet.
func newDuplex(conn net.Conn, peer Peer, session Session, dialled, believed bool) *duplex {
	d := &duplex{conn: conn, peer: peer, session: session, dialled: dialled, began: time.Now(), gone: make(chan struct{})}
	d.believed.Store(believed)
	return d
}

// run reads messages until the connection ends, and returns why it did.
func (d *duplex) run() error {
	defer close(d.gone)
	r := bufio.NewReaderSize(d.conn, 32<<10)
	if d.dialled {
		// A peer to which this daemon is no neighbour writes nothing. That it is there shows in
		// that what is written to it is acknowledged.
		if _, err := r.Peek(1); err != nil {
			return err
		}
	}
	return readAll(d.conn, d.session, func(buf []byte) ([]byte, error) { return ReadMessage(r, buf) })
}

// WriteMessage writes a message to a connection that carries messages both ways, preceded by its
// length as a varint. An empty one is a heartbeat.
func WriteMessage(w *bufio.Writer, message []byte) error {
	if len(message) > maxFrame {
		return fmt.Errorf("write message: %d bytes, more than the limit of %d", len(message), maxFrame)
	}
	if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(message)))); err != nil {
		return err
	}
	_, err := w.Write(message)
	return err
}

// ReadMessage reads what WriteMessage wrote, into buf if that is large enough. It allocates memory
// only as bytes arrive.
func ReadMessage(r *bufio.Reader, buf []byte) ([]byte, error) {
	size, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
		return nil, err
	case size > maxFrame:
		return nil, fmt.Errorf("read message: %d bytes, more than the limit of %d", size, maxFrame)
	}
	return readBytes(r, buf, int(size))
}

// readBytes reads so many bytes.
func readBytes(r io.Reader, buf []byte, size int) ([]byte, error) {
	buf = buf[:0]
	for len(buf) < size {
		n := min(size-len(buf), 64<<10)
		start := len(buf)
		buf = append(buf, make([]byte, n)...)
		if _, err := io.ReadFull(r, buf[start:]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// opened are the connections that peers opened and that carry messages both ways: of each node the
// one to use. The caller holds Streams.mu.
type opened map[clustermesh.Origin]*duplex

// enter notes a connection, and returns the one that it takes the place of; itself if it is of no
// use.
func (all opened) enter(d *duplex, self clustermesh.Origin) (out *duplex) {
	old := all[d.peer.Origin]
	if !d.replaces(old, self) {
		return d
	}
	all[d.peer.Origin] = d
	return old
}

func (all opened) leave(d *duplex) {
	if all[d.peer.Origin] == d {
		delete(all, d.peer.Origin)
	}
}

// takes serves a connection that a peer opened and that carries messages both ways, until it ends.
func (s *Streams) takes(ctx context.Context, conn net.Conn, peer Peer, session Session) error {
	d := newDuplex(conn, peer, session, false, session.Trusted())
	s.mu.Lock()
	out := s.opened.enter(d, s.self.Origin)
	sender := s.senders[peer.Origin]
	s.mu.Unlock()
	if out != nil {
		hangUp(out.conn)
	}
	if sender != nil && out != d {
		sender.came.Poke()
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.opened.leave(d)
	}()
	stop := context.AfterFunc(ctx, func() { hangUp(conn) })
	defer stop()
	return d.run()
}

// newest returns the connection that a node opened; nil if there is none.
func (s *Streams) newest(o clustermesh.Origin) *duplex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.opened[o]; d != nil && !d.ended() {
		return d
	}
	return nil
}

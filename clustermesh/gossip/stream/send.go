package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"strait.io/strait/clustermesh"
)

// yield is how long the higher of two daemons waits for the lower one to dial. It dials then,
// because the other may not reach it: behind a NAT or a firewall, only one side can dial.
const yield = 2 * time.Second

// keep maintains the stream to a neighbour until it is no longer wanted, or ctx ends.
func (s *Streams) keep(ctx context.Context, to *sender) {
	defer to.work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(to.ctx, cancel)
	defer stop()
	backoff := firstBackoff
	wait := s.patience(to.to)
	for {
		began := time.Now()
		err := s.once(ctx, to, wait)
		if ctx.Err() != nil {
			return
		}
		s.log.Debug("record stream ended", "to", to.to, "err", err)
		if time.Since(began) > lastBackoff {
			backoff = firstBackoff
		}
		wait = backoff/2 + rand.N(backoff) + s.patience(to.to)
		backoff = min(2*backoff, lastBackoff)
	}
}

// patience is how long to wait for a neighbour to dial.
func (s *Streams) patience(to clustermesh.Origin) time.Duration {
	if s.self.Origin.Compare(to) < 0 {
		return 0
	}
	return yield
}

// out is a connection on which this daemon writes to a neighbour.
type out struct {
	conn     net.Conn
	believed bool
	duplex   *duplex // nil if only this daemon writes on it
	// ended ends when the peer closes the connection.
	ended context.Context
}

// once waits for a connection that the neighbour opens, or opens one, and writes what is queued
// until that breaks. If the keys change, or the peer is doubted and it is time to look again, it
// opens another at once. What waits goes there.
func (s *Streams) once(ctx context.Context, to *sender, wait time.Duration) error {
	var doubted *duplex // is not to be used again before another one was tried
	for {
		o, err := s.connect(ctx, to, wait, doubted)
		if err != nil {
			return err
		}
		s.host.Connected(to.to, o.duplex != nil)
		if o.believed {
			s.locateOnce(to, o)
		}
		look := time.AfterFunc(doubtedFor, to.renew.Poke)
		if o.believed {
			look.Stop()
		}
		err = s.writeAll(o, to)
		look.Stop()
		doubted = nil
		switch {
		case errors.Is(err, errRenew) && o.duplex != nil && !o.duplex.dialled:
			doubted, wait = o.duplex, 0
		case errors.Is(err, errRenew):
			hangUp(o.conn)
			wait = 0
		case errors.Is(err, errReplaced):
			hangUp(o.conn)
		default:
			hangUp(o.conn)
			return err
		}
	}
}

var (
	// errRenew ends a stream that another shall replace.
	errRenew = errors.New("the gossip keys changed, or the peer is doubted")
	// errReplaced ends one that another has replaced.
	errReplaced = errors.New("the peer opened another connection")
)

// connect returns the connection that the neighbour opened, unless that is not to be used, or one
// that it opens while this daemon waits, or one that this daemon opens then.
func (s *Streams) connect(ctx context.Context, to *sender, wait time.Duration, not *duplex) (out, error) {
	due := time.NewTimer(wait)
	defer due.Stop()
	for {
		if d := s.newest(to.to); d != nil && d != not {
			return to.on(ctx, d), nil
		}
		select {
		case <-ctx.Done():
			return out{}, ctx.Err()
		case <-to.came:
		case <-due.C:
			return s.open(ctx, to)
		}
	}
}

// locateOnce locates a neighbour that has dialled this daemon, and is believed.
func (s *Streams) locateOnce(to *sender, o out) {
	if o.duplex != nil && !o.duplex.dialled {
		to.work.Go(func() { s.locate(o.ended, to.to) })
	}
}

// locate dials a neighbour that has dialled this daemon, to know where it is: packets and probes go
// only where a node has proven who it is.
func (s *Streams) locate(ctx context.Context, o clustermesh.Origin) {
	addr := s.host.Addr(o)
	peer, err := s.Ask(ctx, addr)
	if ctx.Err() == nil && (err != nil || peer.Origin != o || !peer.Trusted) {
		s.host.Missed(o, addr)
	}
}

// on returns how to write on a connection that carries messages both ways.
func (to *sender) on(ctx context.Context, d *duplex) out {
	ended, cancel := context.WithCancelCause(ctx)
	to.work.Go(func() {
		select {
		case <-d.gone:
		case <-ctx.Done():
		}
		cancel(errors.New("the connection ended"))
	})
	return out{conn: d.conn, believed: d.believed.Load(), duplex: d, ended: ended}
}

// open opens a stream to a neighbour.
func (s *Streams) open(ctx context.Context, to *sender) (out, error) {
	addr := s.host.Addr(to.to)
	conn, peer, session, err := s.dialFor(ctx, addr.String(), s.records()...)
	if err == nil && peer.Origin != to.to {
		conn.Close()
		err = fmt.Errorf("%s answers as %s", addr, peer.Origin)
	}
	if ctx.Err() == nil && (err != nil || !peer.Trusted) {
		s.host.Missed(to.to, addr)
	}
	if err != nil {
		return out{}, err
	}
	if conn.ConnectionState().NegotiatedProtocol != bothWays {
		return out{conn: conn, believed: peer.Trusted, ended: to.drain(ctx, conn)}, nil
	}
	d := newDuplex(conn, peer, session, true, peer.Trusted)
	s.note(conn)
	to.work.Go(func() {
		defer s.forget(conn)
		defer session.Close()
		if err := d.run(); ctx.Err() == nil {
			s.log.Debug("record stream ended", "from", peer.Origin, "err", err)
		}
	})
	if theirs := s.newest(to.to); theirs != nil && !d.replaces(theirs, s.self.Origin) {
		hangUp(conn)
		return to.on(ctx, theirs), nil
	}
	return to.on(ctx, d), nil
}

// drain reads from a peer that sends nothing, so that the context ends when it closes the
// connection.
func (to *sender) drain(ctx context.Context, conn *tls.Conn) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	to.work.Go(func() {
		_, err := io.Copy(io.Discard, conn)
		if err == nil {
			err = io.EOF
		}
		cancel(fmt.Errorf("closed by the peer: %w", err))
	})
	return ctx
}

// writeAll writes what is queued until the connection breaks, or another one is to be used.
func (s *Streams) writeAll(o out, to *sender) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	defer to.written()
	var wrote time.Time
	w := bufio.NewWriterSize(o.conn, 32<<10)
	write := WriteFrame
	if o.duplex != nil {
		write = WriteMessage
	}
	for {
		var messages [][]byte
		select {
		case <-o.ended.Done():
			return context.Cause(o.ended)
		case <-to.renew:
			switch d := o.duplex; {
			case d == nil || d.dialled:
				return errRenew
			case o.believed:
				continue // the peer opens another one
			case !d.session.Trusted():
				return errRenew
			}
			o.believed = true // it has proven meanwhile who it is
			o.duplex.believed.Store(true)
			s.locateOnce(to, o)
			continue
		case <-to.came:
			if d := s.newest(to.to); d != nil && d != o.duplex && (o.duplex == nil || d.replaces(o.duplex, s.self.Origin)) {
				return errReplaced
			}
			continue
		case <-to.ready:
			if !pause(o.ended, batch-time.Since(wrote)) {
				return context.Cause(o.ended)
			}
			messages = to.take()
			beat.Reset(heartbeat)
		case <-beat.C:
			messages = [][]byte{nil}
		}
		for _, m := range messages {
			if err := o.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			if err := write(w, m); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		wrote = time.Now()
		to.written()
		if to.lost() {
			s.host.Dropped(to.to)
		}
	}
}

// pause waits for a time, if that is positive, and reports whether the context has not ended by then.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"strait.io/strait/clustermesh"
)

// keep maintains a stream to a neighbour until it is no longer wanted, or ctx ends.
func (s *Streams) keep(ctx context.Context, to *sender) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(to.ctx, cancel)
	defer stop()
	backoff := firstBackoff
	for first := true; ; first = false {
		began := time.Now()
		err := s.once(ctx, to, !first)
		if ctx.Err() != nil {
			return
		}
		s.log.Debug("record stream ended", "to", to.to, "err", err)
		if time.Since(began) > lastBackoff {
			backoff = firstBackoff
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff/2 + rand.N(backoff)):
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// once opens one stream and writes what is queued until the stream breaks. If the keys change, or the
// peer is doubted and it is time to look again, it opens another at once. What waits goes there.
func (s *Streams) once(ctx context.Context, to *sender, again bool) error {
	for {
		conn, believed, err := s.open(ctx, to.to)
		if err != nil {
			return err
		}
		if again {
			s.host.Renewed(to.to)
		}
		look := time.AfterFunc(doubtedFor, to.renew.Poke)
		if believed {
			look.Stop()
		}
		err = s.write(ctx, conn, to)
		look.Stop()
		conn.Close()
		if !errors.Is(err, errRenew) {
			return err
		}
		again = true
	}
}

// errRenew ends a stream that another shall replace.
var errRenew = errors.New("the gossip keys changed, or the peer is doubted")

// open opens a stream to a neighbour.
func (s *Streams) open(ctx context.Context, to clustermesh.Origin) (conn net.Conn, believed bool, err error) {
	addr := s.host.Addr(to)
	conn, peer, err := s.dial(ctx, addr.String())
	if err == nil && peer.Origin != to {
		conn.Close()
		err = fmt.Errorf("%s answers as %s", addr, peer.Origin)
	}
	if ctx.Err() == nil && (err != nil || !peer.Trusted) {
		s.host.Missed(to, addr)
	}
	return conn, peer.Trusted, err
}

// write writes what is queued until the stream breaks or must be reopened.
func (s *Streams) write(ctx context.Context, conn net.Conn, to *sender) error {
	// The peer sends nothing on this stream; reading ends when it closes the stream.
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, conn)
		if err == nil {
			err = io.EOF
		}
		cancel(fmt.Errorf("closed by the peer: %w", err))
	}()
	defer cancel(nil)
	return writeAll(ctx, conn, to)
}

func writeAll(ctx context.Context, conn net.Conn, s *sender) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	defer s.written()
	w := bufio.NewWriterSize(conn, 32<<10)
	for {
		var messages [][]byte
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.renew:
			return errRenew
		case <-s.ready:
			messages = s.take()
		case <-beat.C:
			messages = [][]byte{nil}
		}
		for _, m := range messages {
			if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			if err := WriteFrame(w, m); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		s.written()
	}
}

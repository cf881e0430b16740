package stream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"
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
		s.log.Debug("record stream ended", "to", to.to, "error", err)
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

// once opens one stream and writes what is queued until the stream breaks.
func (s *Streams) once(ctx context.Context, to *sender, again bool) error {
	addr := s.host.Addr(to.to)
	conn, peer, err := s.dial(ctx, addr.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if peer.Origin != to.to {
		return fmt.Errorf("%s answers as %s", addr, peer.Origin)
	}
	if again {
		s.host.Renewed(to.to)
	}
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

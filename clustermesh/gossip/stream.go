package gossip

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/clustermesh"
)

const (
	dialTimeout  = 2 * time.Second
	writeTimeout = 5 * time.Second
	// readTimeout ends a stream on which nothing came for many heartbeats.
	readTimeout = 10 * time.Second
	// userTimeout ends a stream whose bytes are not acknowledged. Without it TCP's own back-off would
	// keep a stream stuck for minutes after a partition was healed.
	userTimeout = 4 * time.Second

	maxQueued      = 4096
	maxQueuedBytes = 64 << 20
	firstBackoff   = 100 * time.Millisecond
	lastBackoff    = 5 * time.Second
)

// sender is the stream to one peer, on which only we write; the peer has its own to us. Its queue is
// bounded: what finds it full is dropped, and the digest exchange repairs that.
type sender struct {
	peer   clustermesh.Origin
	cancel context.CancelFunc
	ready  chan struct{}

	mu    sync.Mutex
	queue [][]byte
	bytes int
}

func newSender(peer clustermesh.Origin, cancel context.CancelFunc) *sender {
	return &sender{peer: peer, cancel: cancel, ready: make(chan struct{}, 1)}
}

// offer queues a message; it never blocks.
func (s *sender) offer(frame []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= maxQueued || s.bytes+len(frame) > maxQueuedBytes {
		return false
	}
	s.queue = append(s.queue, frame)
	s.bytes += len(frame)
	poke(s.ready)
	return true
}

func (s *sender) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	frames := s.queue
	s.queue, s.bytes = nil, 0
	return frames
}

// send keeps a stream to the peer until ctx ends.
func (g *Gossip) send(ctx context.Context, s *sender) {
	backoff := firstBackoff
	for first := true; ; first = false {
		began := time.Now()
		err := g.sendOnce(ctx, s, !first)
		if ctx.Err() != nil {
			return
		}
		g.log.Debug("record stream ended", "to", s.peer, "error", err)
		if time.Since(began) > lastBackoff {
			backoff = firstBackoff
		}
		if !sleep(ctx, backoff/2+rand.N(backoff)) {
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// sendOnce makes one stream and writes what is queued until it breaks.
func (g *Gossip) sendOnce(ctx context.Context, s *sender, again bool) error {
	g.mu.Lock()
	addr := g.contacts.memberAddr(s.peer)
	g.mu.Unlock()
	conn, peer, err := g.dial(ctx, addr.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if peer.origin != s.peer {
		return fmt.Errorf("%s answers as %s", addr, peer.origin)
	}
	if again {
		// What was on its way when the last stream broke is lost.
		g.mu.Lock()
		g.apply(g.replica.Exchange(s.peer))
		g.mu.Unlock()
	}
	// The peer says nothing here; reading ends when it closes the stream.
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, conn)
		cancel(fmt.Errorf("closed by the peer: %w", errOr(err, io.EOF)))
	}()
	defer cancel(nil)
	return writeAll(ctx, conn, s)
}

func writeAll(ctx context.Context, conn net.Conn, s *sender) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	w := bufio.NewWriterSize(conn, 32<<10)
	for {
		var frames [][]byte
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ready:
			frames = s.take()
		case <-beat.C:
			frames = [][]byte{nil}
		}
		for _, f := range frames {
			if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			if err := writeFrame(w, f); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

// dial opens a record stream and returns who answers. The error is errWrongKey if the keys differ, and
// errOtherCluster if its cluster has the name of another.
func (g *Gossip) dial(ctx context.Context, addr string) (net.Conn, peer, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if ctl := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
		}); ctl != nil {
			return ctl
		}
		return err
	}}
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, peer{}, err
	}
	conn := tls.Client(raw, g.identity.config())
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, peer{}, handshakeError(err)
	}
	p, err := g.identity.peer(conn.ConnectionState())
	if err == nil {
		err = g.admit(p, addr)
	}
	if err != nil {
		conn.Close()
		return nil, p, err
	}
	return conn, p, nil
}

// streamAddr is the host of a stream's other end: its port is of no use to a reader.
func streamAddr(c net.Conn) string {
	if ap, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		return ap.Addr().Unmap().String()
	}
	return c.RemoteAddr().String()
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

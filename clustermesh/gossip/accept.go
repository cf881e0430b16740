package gossip

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

// accept serves a record stream that a peer opened, until it breaks or ctx ends.
func (g *Gossip) accept(ctx context.Context, raw net.Conn) {
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	defer raw.Close()
	conn := tls.Server(raw, g.identity.config())
	shakeCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	err := conn.HandshakeContext(shakeCtx)
	cancel()
	if err = handshakeError(err); err != nil {
		g.log.Debug("record stream refused", "from", raw.RemoteAddr(), "error", err)
		if errors.Is(err, errWrongKey) && ctx.Err() == nil {
			g.wrongKey(streamAddr(raw))
		}
		return
	}
	peer, err := g.identity.peer(conn.ConnectionState())
	if err != nil || g.admit(peer, streamAddr(raw)) != nil {
		return
	}
	if peer.origin == g.cfg.Self {
		if peer.boot != g.boot {
			g.mu.Lock()
			g.problem("duplicate "+g.cfg.Self.String(), duplicateProblem(g.cfg.Self, g.cfg.Advertise.String(), streamAddr(raw)), problemLife)
			g.mu.Unlock()
		}
		return
	}
	g.mu.Lock()
	g.solved("key " + streamAddr(raw)) // restarted with the right one
	g.mu.Unlock()
	if err := g.read(conn, peer.origin); err != nil && ctx.Err() == nil {
		g.log.Debug("record stream ended", "from", peer.origin, "error", err)
	}
}

// keptFrame is the size up to which a stream's memory for a message is kept for the next one.
const keptFrame = 64 << 10

// read takes messages of a peer until the stream ends.
func (g *Gossip) read(conn net.Conn, peer clustermesh.Origin) error {
	r := bufio.NewReaderSize(conn, 32<<10)
	var buf []byte
	opened := false
	defer func() {
		if opened {
			g.streamed(peer, -1)
		}
	}()
	for {
		if err := conn.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
			return err
		}
		frame, err := readFrame(r, buf)
		if err != nil {
			return err
		}
		if !opened {
			// Only now: a peer that merely asked who we are has no stream that could fall silent.
			g.streamed(peer, +1)
			opened = true
		}
		buf = frame
		if err := g.take(peer, frame); err != nil {
			return err
		}
		if cap(buf) > keptFrame {
			buf = nil // large ones are rare, and peers are many
		}
	}
}

// take lets one message of a peer into the replica.
func (g *Gossip) take(peer clustermesh.Origin, frame []byte) error {
	var message replica.Message
	if len(frame) > 0 {
		var err error
		if message, err = g.decode(frame); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.contacts.frame(peer, time.Now())
	if message == nil {
		return nil
	}
	synced := g.replica.Synced()
	g.apply(g.replica.Receive(peer, message))
	if !synced && g.replica.Synced() {
		poke(g.changed)
	}
	return nil
}

// decode reads large messages one at a time: while it is read a message takes several times its size, and when the daemon
// starts all peers send at once.
func (g *Gossip) decode(frame []byte) (replica.Message, error) {
	if len(frame) > keptFrame {
		g.decoding.Lock()
		defer g.decoding.Unlock()
	}
	return replica.Decode(frame)
}

func (g *Gossip) streamed(peer clustermesh.Origin, delta int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.contacts.stream(peer, delta, time.Now())
	poke(g.inbox.ready) // a stream that broke is a reason to look
}

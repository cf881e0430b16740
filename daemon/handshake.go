package daemon

import (
	"context"
	"net"
	"net/netip"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// notePeers remembers the current peers, and whether any of them is new.
func (t *tunnels) notePeers(peers []datapath.Peer) {
	t.kernel.mu.Lock()
	defer t.kernel.mu.Unlock()
	inside := make(map[key.Public]netip.AddrPort, len(peers))
	for _, p := range peers {
		inside[p.Key] = p.Inside
		if _, known := t.inside[p.Key]; !known {
			t.newPeers = true
		}
	}
	t.inside = inside
}

// handshakeTimeout bounds the wait for peers that do not answer.
const handshakeTimeout = time.Second

// handshake starts sessions with the device's peers if some are new. Then the first connection need not
// wait for a handshake, and a person who connects two clusters sees at once whether their tunnel
// works. With wait, handshake returns when the peers have answered, or after handshakeTimeout. A machine
// that rebooted has lost its sessions, and its peers do not know: traffic that it attracts by
// publishing before they do is lost.
func (k *kernel) handshake(ctx context.Context, wait bool) {
	if k.mesh == nil || !k.mesh.newPeers {
		return
	}
	k.mesh.newPeers = false
	if wait {
		k.performHandshakes(ctx)
		return
	}
	k.handshakes.Poke()
}

// performHandshakes performs handshakes with the peers that have no session.
func (k *kernel) performHandshakes(ctx context.Context) {
	device, is := k.mesh.opened()
	if !is {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := device.Handshake(ctx, k.mesh.ask); err != nil {
		k.log.Warn("cannot start handshakes with the peers", "err", err)
	}
}

// ask returns when a peer has answered through the tunnel, by accepting or refusing a connection.
func (t *tunnels) ask(ctx context.Context, peer key.Public) {
	t.kernel.mu.Lock()
	addr := t.inside[peer]
	t.kernel.mu.Unlock()
	if !addr.Addr().IsValid() {
		return
	}
	var d net.Dialer
	if conn, err := d.DialContext(ctx, "tcp", addr.String()); err == nil {
		conn.Close()
	}
}

// handshaker performs handshakes in the background until ctx is done, so that no turn waits for peers
// that do not answer.
func (k *kernel) handshaker(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.handshakes:
			k.performHandshakes(ctx)
		}
	}
}

package daemon

import (
	"context"
	"net"
	"net/netip"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// meet remembers the current peers, and whether any of them is new.
func (t *tunnels) meet(peers []datapath.Peer) {
	t.kernel.mu.Lock()
	defer t.kernel.mu.Unlock()
	met := make(map[key.Public]netip.AddrPort, len(peers))
	for _, p := range peers {
		met[p.Key] = p.Inside
		if _, known := t.met[p.Key]; !known {
			t.strangers = true
		}
	}
	t.met = met
}

// greetTimeout bounds the wait for peers that do not answer.
const greetTimeout = time.Second

// greet starts sessions with the device's peers if some are new. Then the first connection need not
// wait for a handshake, and a person who connects two clusters sees at once whether their tunnel
// works. With wait, greet returns when the peers have answered, or after greetTimeout. A machine
// that rebooted has lost its sessions, and its peers do not know: traffic that it attracts by
// publishing before they do is lost.
func (k *kernel) greet(ctx context.Context, wait bool) {
	if k.mesh == nil || !k.mesh.strangers {
		return
	}
	k.mesh.strangers = false
	if wait {
		k.shake(ctx)
		return
	}
	k.greetings.Poke()
}

// shake performs handshakes with the peers that have no session.
func (k *kernel) shake(ctx context.Context) {
	device, is := k.mesh.opened()
	if !is {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	if err := device.Greet(ctx, k.mesh.ask); err != nil {
		k.log.Warn("cannot greet the peers", "err", err)
	}
}

// ask returns when a peer has answered through the tunnel, by accepting or refusing a connection.
func (t *tunnels) ask(ctx context.Context, peer key.Public) {
	t.kernel.mu.Lock()
	inside := t.met[peer]
	t.kernel.mu.Unlock()
	if !inside.Addr().IsValid() {
		return
	}
	var d net.Dialer
	if conn, err := d.DialContext(ctx, "tcp", inside.String()); err == nil {
		conn.Close()
	}
}

// greeter greets in the background until ctx is done, so that no turn waits for peers that do not
// answer.
func (k *kernel) greeter(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.greetings:
			k.shake(ctx)
		}
	}
}

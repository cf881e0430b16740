package daemon

import (
	"context"
	"net"
	"net/netip"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// meet notes which peers there are.
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

// greetTimeout bounds how long peers that do not answer are waited for.
const greetTimeout = time.Second

// greet makes sure that the device has sessions with its peers, if some are new: the first connection need not wait for
// a handshake then, and whoever joins two clusters sees at once whether their tunnel stands. With wait it returns when
// they have answered, or did not in time: a machine that was booted lost its sessions, and its peers do not know; what
// it publishes before they do draws traffic into the void.
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

// shake hands with the peers that have no session.
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

// ask returns when a peer has answered through the tunnel: it takes the connection or refuses it.
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

// greeter greets in the background until ctx is done, so that no turn waits for peers that do not answer.
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

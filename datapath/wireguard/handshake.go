package wireguard

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"strait.io/strait/internal/key"
)

const (
	// headStart is how long the node with the higher key waits before it starts one too. Two
	// initiations that cross cancel each other, and WireGuard retries only after 5 s.
	headStart = 300 * time.Millisecond
	// handshakePoll is how often Handshake reads the peers.
	handshakePoll = 20 * time.Millisecond
)

// Handshake starts handshakes with the peers that have had none on this device, and waits for them
// until ctx is done. It is for a machine that has booted: it has lost the old sessions, which its
// peers keep using until they have missed its answers for 15 s. A handshake of its own ends that at
// once. Peers that do not answer are no error.
//
// The answer to a handshake does not mean yet that the peer uses the new session: it does so only
// after the first packet in it. So as soon as the handshake of such a peer is done, Handshake calls ask
// once for it, in a goroutine, and it waits for all calls. ask should return when the peer has
// answered something through the tunnel, or ctx is done.
func (d *Device) Handshake(ctx context.Context, ask func(context.Context, key.Public)) error {
	begin := time.Now()
	own := d.key.Public()
	initiated, waiting := map[key.Public]bool{}, map[key.Public]bool{}
	var asked sync.WaitGroup
	defer asked.Wait()
	for ctx.Err() == nil {
		peers, err := d.Peers()
		if err != nil {
			return err
		}
		var now []key.Public
		before := waiting
		waiting = map[key.Public]bool{}
		for _, p := range peers {
			if !p.Handshake.IsZero() && before[p.Key] {
				asked.Go(func() { ask(ctx, p.Key) })
			}
			if !p.Handshake.IsZero() || !p.Underlay.IsValid() {
				continue
			}
			waiting[p.Key] = true
			if !initiated[p.Key] && (bytes.Compare(own[:], p.Key[:]) < 0 || time.Since(begin) > headStart) {
				initiated[p.Key] = true
				now = append(now, p.Key)
			}
		}
		if len(waiting) == 0 {
			return nil
		}
		if err := d.initiate(now); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(handshakePoll):
		}
	}
	return nil
}

// initiate starts handshakes: switching on the persistent keepalive makes WireGuard send something
// at once. It is switched off again.
func (d *Device) initiate(keys []key.Public) error {
	if len(keys) == 0 {
		return nil
	}
	for _, every := range []time.Duration{time.Minute, 0} {
		configs := make([]wgtypes.PeerConfig, len(keys))
		for i, k := range keys {
			configs[i] = wgtypes.PeerConfig{PublicKey: wgtypes.Key(k), UpdateOnly: true, PersistentKeepaliveInterval: &every}
		}
		if err := d.client.configure(wgtypes.Config{Peers: configs}); err != nil {
			return fmt.Errorf("start handshakes with %d peers: %w", len(keys), err)
		}
	}
	return nil
}

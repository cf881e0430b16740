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
	// headStart is what the peer with the lower key has before the other greets too. Two initiations that
	// cross undo each other, and WireGuard tries again only after 5 s.
	headStart = 300 * time.Millisecond
	// greetPoll is how often Greet looks.
	greetPoll = 20 * time.Millisecond
)

// Greet starts handshakes with the peers that have had none on this device, and waits for them until ctx
// is done. For a machine that was booted: its peers go on in the old sessions, which it lost, until they
// miss its answers for 15 s; a handshake of its own ends that at once. Peers that do not answer are no
// error.
//
// The answer to a handshake does not yet mean that the peer uses the new session: it does from the first
// packet in it on. So Greet calls ask once for each of these peers as soon as its handshake is done, in a
// goroutine, and waits for all calls. Ask is to return when the peer has answered something through the
// tunnel, or ctx is done.
func (d *Device) Greet(ctx context.Context, ask func(context.Context, key.Public)) error {
	begin := time.Now()
	own := d.key.Public()
	greeted, waiting := map[key.Public]bool{}, map[key.Public]bool{}
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
			if !greeted[p.Key] && (bytes.Compare(own[:], p.Key[:]) < 0 || time.Since(begin) > headStart) {
				greeted[p.Key] = true
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
		case <-time.After(greetPoll):
		}
	}
	return nil
}

// initiate starts a handshake: to switch the persistent keepalive on makes WireGuard send something now.
// It is switched off again.
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

package wireguard

import (
	"bytes"
	"context"
	"fmt"
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
func (d *Device) Greet(ctx context.Context) error {
	begin := time.Now()
	own := d.key.Public()
	greeted := map[key.Public]bool{}
	for ctx.Err() == nil {
		peers, err := d.Peers()
		if err != nil {
			return err
		}
		var now []key.Public
		strangers := 0
		for _, p := range peers {
			if !p.Handshake.IsZero() || !p.Underlay.IsValid() {
				continue
			}
			strangers++
			if !greeted[p.Key] && (bytes.Compare(own[:], p.Key[:]) < 0 || time.Since(begin) > headStart) {
				greeted[p.Key] = true
				now = append(now, p.Key)
			}
		}
		if strangers == 0 {
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

package wireguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// Reconcile makes the device's peers as wanted, touching only what differs: a peer that stays keeps its
// session. An underlay is rewritten only when the wanted one changed, not because the peer roamed; see
// rewrite for the first time after a restart. An allowed IP that moves belongs to the old or the new
// peer at every moment. With prune false nothing is removed. Removed peers go last.
//
// If the device does not answer, or its link was set down or lost its address, that is repaired first. The error joins one error per peer.
func (d *Device) Reconcile(want []datapath.Peer, prune bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	have, err := d.revive()
	if err != nil {
		return err
	}
	c, err := diff(have.peers, want, d.set, d.key.Public(), time.Now())
	d.remember(have.peers, want)
	errs := []error{err, d.put(c.put)}
	if prune {
		errs = append(errs, d.shed(c.shed), d.remove(c.remove))
	}
	return errors.Join(errs...)
}

// Peers are the device's peers, sorted by key.
func (d *Device) Peers() ([]PeerStatus, error) {
	have, err := d.client.read()
	return have.peers, err
}

// revive reads the device, and restarts it if that cannot be done or it lost its identity. It also
// repairs the link, which somebody may have set down.
func (d *Device) revive() (state, error) {
	have, err := d.client.read()
	if err == nil && have.key == d.key && (d.cfg.Port == 0 || have.port == d.cfg.Port) {
		// The MTU is not repaired: the daemon may have changed it since Open.
		if err := d.links.SetUp(d.cfg.Device, 0, d.cfg.Addr); err == nil {
			return have, nil
		}
	}
	d.cfg.Log.Warn("WireGuard device is not as it was left, restarting it", "device", d.cfg.Device, "err", err)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	d.keepMTU()
	if err := d.ensure(ctx); err != nil {
		return state{}, fmt.Errorf("restart WireGuard device %s: %w", d.cfg.Device, err)
	}
	return d.client.read()
}

// put configures all peers at once, and one by one if that fails, to find out which.
func (d *Device) put(puts []put) error {
	if len(puts) == 0 {
		return nil
	}
	configs := make([]wgtypes.PeerConfig, len(puts))
	for i, p := range puts {
		configs[i] = p.config()
	}
	err := d.client.configure(wgtypes.Config{Peers: configs})
	if silent(err) {
		return fmt.Errorf("put %d peers: %w", len(puts), err)
	}
	var errs []error
	for i, p := range puts {
		if err != nil {
			if err := d.client.configure(wgtypes.Config{Peers: configs[i : i+1]}); err != nil {
				errs = append(errs, fmt.Errorf("put peer %s: %w", p.Name, err))
				continue
			}
		}
		if p.Underlay.IsValid() {
			d.set[p.Key] = p.Underlay
		}
	}
	return errors.Join(errs...)
}

// shed takes allowed IPs from their peers. The kernels before 6.16 can only replace all allowed IPs of a
// peer, with a moment in which it has none and packets are lost. So the unwanted ones move to a
// throw-away peer, in one step each, and go with it.
func (d *Device) shed(prefixes []netip.Prefix) error {
	if len(prefixes) == 0 {
		return nil
	}
	private, err := key.Generate(rand.Reader)
	if err != nil {
		return err
	}
	bin := wgtypes.Key(private.Public())
	err = d.client.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{{PublicKey: bin, AllowedIPs: toIPNets(prefixes)}}})
	if err == nil {
		err = d.client.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{{PublicKey: bin, Remove: true}}})
	}
	if err != nil {
		return fmt.Errorf("remove allowed IPs %v: %w", prefixes, err)
	}
	return nil
}

func (d *Device) remove(keys []key.Public) error {
	if len(keys) == 0 {
		return nil
	}
	configs := make([]wgtypes.PeerConfig, len(keys))
	for i, k := range keys {
		configs[i] = wgtypes.PeerConfig{PublicKey: wgtypes.Key(k), Remove: true}
	}
	if err := d.client.configure(wgtypes.Config{Peers: configs}); err != nil {
		return fmt.Errorf("remove peers %v: %w", keys, err)
	}
	return nil
}

// remember notes the underlays that the device already had as wanted, and forgets unwanted peers.
func (d *Device) remember(have []PeerStatus, want []datapath.Peer) {
	held := make(map[key.Public]netip.AddrPort, len(have))
	for _, h := range have {
		held[h.Key] = h.Underlay
	}
	wanted := map[key.Public]bool{}
	for _, w := range want {
		wanted[w.Key] = true
		if w.Underlay.IsValid() && held[w.Key] == w.Underlay {
			d.set[w.Key] = w.Underlay
		}
	}
	maps.DeleteFunc(d.set, func(k key.Public, _ netip.AddrPort) bool { return !wanted[k] })
}

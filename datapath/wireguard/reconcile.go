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
	"strait.io/strait/internal/problem"
)

// Reconcile makes the device's peers match want, and changes only what differs: a peer that stays
// keeps its session. An underlay is rewritten only if the wanted one changed, not because the peer
// roamed; see rewrite for the first time after a restart. An allowed IP that moves belongs to the
// old or the new peer at every moment. If prune is false nothing is removed. Unwanted peers are
// removed last.
//
// If the device is gone, does not answer, has lost its key, port or mark, or its link was renamed, set down
// or lost its MTU or address, that is repaired first.
//
// A peer or an allowed IP that the device refuses is left out and is a Problem; the next Reconcile
// tries it again. An error means that the device does not work.
func (d *Device) Reconcile(want []datapath.Peer, prune bool) ([]problem.Problem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	have, err := d.revive()
	if err != nil {
		return nil, err
	}
	c, problems := diff(have.peers, want, d.set, d.seen, d.key.Public(), time.Now())
	d.remember(have.peers, want, time.Now())
	refused, err := d.put(c.put)
	errs := []error{err}
	if prune {
		errs = append(errs, d.shed(c.shed), d.remove(c.remove))
	}
	return append(problems, refused...), errors.Join(errs...)
}

// Remove removes peers at once. It succeeds if the device does not have them. It repairs the device first,
// like Reconcile.
func (d *Device) Remove(keys []key.Public) error {
	if len(keys) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.revive(); err != nil {
		return err
	}
	return d.remove(keys)
}

// Peers returns the device's peers, sorted by key.
func (d *Device) Peers() ([]PeerStatus, error) {
	have, err := d.client.read()
	return have.peers, err
}

// revive reads the device. It restarts the device if that fails, if it is gone, or if it has lost its key,
// port or mark. It also repairs the link.
func (d *Device) revive() (state, error) {
	have, err := d.client.read()
	if err == nil && d.identified(have) {
		if err = d.links.SetUp(d.cfg.Device, d.cfg.MTU, d.cfg.Addr); err == nil {
			return have, nil
		}
	}
	d.cfg.Log.Warn("WireGuard device does not answer or was changed, restarting it", "device", d.cfg.Device, "err", err)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := d.ensure(ctx); err != nil {
		return state{}, fmt.Errorf("restart WireGuard device %s: %w", d.cfg.Device, err)
	}
	return d.client.read()
}

// identified reports whether the device has its key, port and mark.
func (d *Device) identified(have state) bool {
	return have.key == d.key && (d.cfg.Port == 0 || have.port == d.cfg.Port) && have.mark == datapath.TunnelMark
}

// put configures all peers at once. If that fails, it configures them one by one to find out which
// are refused.
func (d *Device) put(puts []put) ([]problem.Problem, error) {
	if len(puts) == 0 {
		return nil, nil
	}
	configs := make([]wgtypes.PeerConfig, len(puts))
	for i, p := range puts {
		configs[i] = p.config()
	}
	err := d.client.configure(wgtypes.Config{Peers: configs})
	var problems []problem.Problem
	for _, p := range puts {
		if silent(err) {
			return nil, fmt.Errorf("put %d peers: %w", len(puts), err)
		}
		if err != nil {
			refused, e := d.putAlone(p)
			if problems = append(problems, refused...); silent(e) {
				return problems, fmt.Errorf("put peer %s: %w", p.Name, e)
			} else if e != nil {
				continue
			}
		}
		if p.Underlay.IsValid() {
			d.set[p.Key] = p.Underlay
		}
	}
	if len(problems) > 0 {
		// If the device still answers, it did refuse these peers. Otherwise the device itself has
		// failed.
		if _, err := d.client.read(); err != nil {
			return nil, fmt.Errorf("put %d peers: %w", len(puts), err)
		}
	}
	return problems, nil
}

// putAlone configures one peer, and if that fails, its parts one by one. The error means that the
// peer itself was refused or the device does not answer; refused allowed IPs are only Problems.
func (d *Device) putAlone(p put) (problems []problem.Problem, err error) {
	if err = d.client.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{p.config()}}); err == nil || silent(err) {
		return nil, err
	}
	bare := p
	bare.AllowedIPs = nil
	if err := d.client.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{bare.config()}}); err != nil {
		return []problem.Problem{problem.Named("peer", p.Name).Problem(problem.Problem{
			Code:    problem.PeerRefused,
			Message: fmt.Sprintf("the WireGuard device refuses it: %v: no tunnel to this node", err),
			Try:     "correct the node's key, address or port; every other peer is in force",
		})}, err
	}
	for _, ip := range p.AllowedIPs {
		one := put{Peer: datapath.Peer{Key: p.Key, AllowedIPs: []netip.Prefix{ip}}}
		switch err := d.client.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{one.config()}}); {
		case silent(err):
			return problems, err
		case err != nil:
			problems = append(problems, problem.Named("peer", p.Name).Problem(problem.Problem{
				Code:    problem.PeerRefused,
				Field:   "prefixes",
				Message: fmt.Sprintf("the WireGuard device refuses %s: %v: pods there cannot be reached from here", ip, err),
				Try:     "correct the prefix of the node; its other prefixes are in force",
			}))
		}
	}
	return problems, nil
}

// shed removes allowed IPs from their peers. Kernels before 6.16 can only replace all allowed IPs
// of a peer: for a moment it has none, and packets are lost. So shed moves the unwanted ones to a
// throw-away peer, in one step each, and removes that peer.
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

// remember records the underlays that the device already had as wanted, and what was seen of each peer, and
// forgets unwanted peers.
func (d *Device) remember(have []PeerStatus, want []datapath.Peer, now time.Time) {
	seen := make(map[key.Public]sight, len(have))
	for _, h := range have {
		s, known := d.seen[h.Key]
		seen[h.Key] = s.look(h, known, now)
	}
	d.seen = seen
	underlays := make(map[key.Public]netip.AddrPort, len(have))
	for _, h := range have {
		underlays[h.Key] = h.Underlay
	}
	wanted := map[key.Public]bool{}
	for _, w := range want {
		wanted[w.Key] = true
		if w.Underlay.IsValid() && underlays[w.Key] == w.Underlay {
			d.set[w.Key] = w.Underlay
		}
	}
	maps.DeleteFunc(d.set, func(k key.Public, _ netip.AddrPort) bool { return !wanted[k] })
}

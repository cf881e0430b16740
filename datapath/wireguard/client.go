package wireguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"strait.io/strait/internal/key"
)

// callTimeout bounds one call to a device. wgctrl has no deadline of its own, and a userspace
// process that is stopped never answers. A process that misses two calls in a row is replaced.
const callTimeout = 3 * time.Second

// control is the part of a client that a Device needs.
type control interface {
	read() (state, error)
	configure(cfg wgtypes.Config) error
	close() error
}

// client controls one device, kernel or userspace, through wgctrl.
type client struct {
	wg     *wgctrl.Client
	device string
	// busy holds a token during a call, so that a hanging device costs one goroutine and not one
	// per call.
	busy chan struct{}
}

// state is the state of a device.
type state struct {
	kind   Kind
	key    key.Private
	port   uint16
	mark   int
	peers  []PeerStatus
	public key.Public
}

func newClient(device string) (*client, error) {
	wg, err := wgctrl.New()
	if err != nil {
		return nil, fmt.Errorf("open WireGuard control: %w", err)
	}
	return &client{wg: wg, device: device, busy: make(chan struct{}, 1)}, nil
}

func (c *client) close() error { return c.wg.Close() }

// read returns the state. The error satisfies errors.Is(err, os.ErrDeadlineExceeded) if the device
// does not answer.
func (c *client) read() (state, error) {
	var d *wgtypes.Device
	err := c.call(func() (err error) {
		// By name: Devices() would fail completely because of one dead socket of another device.
		d, err = c.wg.Device(c.device)
		return err
	})
	if err != nil {
		return state{}, fmt.Errorf("read WireGuard device %s: %w", c.device, err)
	}
	return toState(d), nil
}

// Peers returns the peers of a device that may be there, for programs that do not open it. If it is not
// there, or is no WireGuard device, the error satisfies errors.Is(err, os.ErrNotExist).
func Peers(device string) (out []PeerStatus, err error) {
	c, err := newClient(device)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	s, err := c.read()
	return s.peers, err
}

func (c *client) configure(cfg wgtypes.Config) error {
	return c.call(func() error { return c.wg.ConfigureDevice(c.device, cfg) })
}

// call runs f, but waits for it no longer than callTimeout. The caller must not read what f writes
// if the result is a timeout.
func (c *client) call(f func() error) error {
	timeout := time.NewTimer(callTimeout)
	defer timeout.Stop()
	select {
	case c.busy <- struct{}{}:
	case <-timeout.C:
		return fmt.Errorf("an earlier call has not been answered: %w", os.ErrDeadlineExceeded)
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-c.busy }()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-timeout.C:
		return fmt.Errorf("no answer within %v: %w", callTimeout, os.ErrDeadlineExceeded)
	}
}

func toState(d *wgtypes.Device) state {
	s := state{kind: Userspace, key: key.Private(d.PrivateKey), port: uint16(d.ListenPort), mark: d.FirewallMark, public: key.Public(d.PublicKey)}
	if d.Type == wgtypes.LinuxKernel {
		s.kind = Kernel
	}
	for _, p := range d.Peers {
		s.peers = append(s.peers, toStatus(p))
	}
	slices.SortFunc(s.peers, func(a, b PeerStatus) int { return slices.Compare(a.Key[:], b.Key[:]) })
	return s
}

func toStatus(p wgtypes.Peer) PeerStatus {
	st := PeerStatus{
		Key:       key.Public(p.PublicKey),
		Handshake: p.LastHandshakeTime,
		Sent:      p.TransmitBytes,
		Received:  p.ReceiveBytes,
		Altered:   p.PresharedKey != wgtypes.Key{} || p.PersistentKeepaliveInterval != 0,
	}
	if p.LastHandshakeTime.Unix() == 0 { // how a userspace device reports that there was none
		st.Handshake = time.Time{}
	}
	if p.Endpoint != nil {
		a := p.Endpoint.AddrPort()
		st.Underlay = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	for _, n := range p.AllowedIPs {
		ones, _ := n.Mask.Size()
		if a, ok := netip.AddrFromSlice(n.IP); ok {
			st.AllowedIPs = append(st.AllowedIPs, netip.PrefixFrom(a.Unmap(), ones))
		}
	}
	slices.SortFunc(st.AllowedIPs, netip.Prefix.Compare)
	return st
}

func (p put) config() wgtypes.PeerConfig {
	cfg := wgtypes.PeerConfig{
		PublicKey: wgtypes.Key(p.Key),
		// A peer that vanished since it was read must not come back with half of its settings.
		UpdateOnly: !p.create,
		AllowedIPs: toIPNets(p.AllowedIPs),
	}
	if p.reset {
		cfg.PresharedKey, cfg.PersistentKeepaliveInterval = new(wgtypes.Key), new(time.Duration)
	}
	if p.Underlay.IsValid() {
		cfg.Endpoint = net.UDPAddrFromAddrPort(p.Underlay)
	}
	return cfg
}

func toIPNets(prefixes []netip.Prefix) []net.IPNet {
	nets := make([]net.IPNet, 0, len(prefixes))
	for _, p := range prefixes {
		nets = append(nets, net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
	}
	return nets
}

// silent reports whether the device exists but does not answer.
func silent(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

package wireguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// startTimeout bounds Open, and the restart of a device in Reconcile.
const startTimeout = 20 * time.Second

// Device is the node's WireGuard device. Its methods can be called from several goroutines.
type Device struct {
	cfg    Config
	links  Links
	client control
	key    key.Private

	// kind is Kernel or Userspace. kind and client are used without mu, so that a status page does
	// not wait for a Reconcile that waits for a hanging device.
	kind atomic.Value

	mu sync.Mutex
	// made counts how often the device was made again, or got its key back: its peers' sessions are lost.
	made int
	// set is, per peer, the underlay that this process last set, or that it found as wanted.
	set map[key.Public]netip.AddrPort
	// seen is, per peer of the device, what the last look found.
	seen map[key.Public]sight
	// child is the pid of the userspace process if this Device started it, to be reaped when it
	// exits; otherwise 0.
	child int
}

// Open makes sure that the device exists, has the node's key, port and mark, and is up. A running
// device is not disturbed: its sessions, and the connections through it, stay. For a userspace
// device, Open adopts the process that serves it, or starts one if there is none. A TUN that a
// killed process left is attached again, with its address and routes.
func Open(ctx context.Context, cfg Config, links Links) (*Device, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	private, err := LoadKey(cfg.KeyFile)
	if err != nil {
		return nil, err
	}
	c, err := newClient(cfg.Device)
	if err != nil {
		return nil, err
	}
	d := &Device{cfg: cfg, links: links, client: c, key: private, set: map[key.Public]netip.AddrPort{}}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := d.ensure(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Kind returns Kernel or Userspace.
func (d *Device) Kind() Kind {
	kind, _ := d.kind.Load().(Kind)
	return kind
}

// Alive reports whether the device answers. A userspace device whose process died does not.
func (d *Device) Alive() bool {
	_, err := d.client.read()
	if d.mu.TryLock() {
		defer d.mu.Unlock()
		d.reap()
	}
	return err == nil
}

// Shape sets the MTU and address that the next Reconcile gives the link, as in Config.
func (d *Device) Shape(mtu int, addr netip.Prefix) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cfg.MTU, d.cfg.Addr = mtu, addr
}

// Made counts how often the device was made again, or was given its key again. Its peers have no
// sessions afterwards.
func (d *Device) Made() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made
}

// Close closes the client. The device stays, and so does a userspace process.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reap()
	return d.client.close()
}

// dyingWait is how long a process may take to notice that its TUN was deleted.
const dyingWait = time.Second

func (d *Device) ensure(ctx context.Context) error {
	began := time.Now()
	for {
		d.reap()
		err := d.links.Claim(d.cfg.Device)
		if err == nil {
			err = d.create(ctx)
		}
		if err == nil {
			err = d.identify(ctx)
		}
		if err == nil {
			err = d.links.SetUp(d.cfg.Device, d.cfg.MTU, d.cfg.Addr)
		}
		if d.Kind() != Userspace || !errors.Is(err, unix.ENODEV) {
			return err
		}
		// The process that was adopted serves a TUN that was deleted, or has another name now.
		if time.Since(began) > dyingWait {
			if err := d.evict(); err != nil {
				return err
			}
		}
		if sleep(ctx, 20*time.Millisecond) != nil {
			return err
		}
	}
}

// evict ends the process that serves the device's socket, so that another one makes the TUN.
func (d *Device) evict() error {
	pid, err := owner(d.cfg.Device)
	if unserved(err) || err != nil || pid == 0 {
		return nil // ensure finds out what it means
	}
	d.cfg.Log.Warn("the WireGuard process has lost its device, killing it", "device", d.cfg.Device, "pid", pid)
	return stop(d.cfg.Device, pid)
}

// create creates the link, of the kind that the mode and the kernel allow.
func (d *Device) create(ctx context.Context) error {
	tun, err := isTUN(d.cfg.Device)
	if err != nil {
		return err
	}
	// A device that was deleted comes back as what it was.
	if d.cfg.Mode == Kernel || (d.cfg.Mode == Auto && !tun && d.Kind() != Userspace) {
		err := d.links.AddWireGuard(d.cfg.Device)
		if err == nil {
			d.kind.Store(Kernel)
			return nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if d.cfg.Mode == Kernel {
			return fmt.Errorf("%w: the kernel has no WireGuard; load its module (modprobe wireguard)", err)
		}
	}
	d.kind.Store(Userspace)
	return d.adoptOrStart(ctx)
}

// identify sets the key, the port and the mark if they differ. It does not set the same key again,
// because that ends all sessions.
func (d *Device) identify(ctx context.Context) error {
	have, err := d.client.read()
	if err != nil {
		return err
	}
	var cfg wgtypes.Config
	if have.key != d.key {
		k := wgtypes.Key(d.key)
		cfg.PrivateKey = &k
		d.made++
	}
	if d.cfg.Port != 0 && have.port != d.cfg.Port {
		if err := portFree(ctx, d.cfg.Port); err != nil {
			return err
		}
		port := int(d.cfg.Port)
		cfg.ListenPort = &port
	}
	if have.mark != datapath.TunnelMark {
		mark := datapath.TunnelMark
		cfg.FirewallMark = &mark
	}
	if cfg.PrivateKey == nil && cfg.ListenPort == nil && cfg.FirewallMark == nil {
		return nil
	}
	if err := d.client.configure(cfg); err != nil {
		return fmt.Errorf("set key, port and mark of WireGuard device %s: %w", d.cfg.Device, err)
	}
	return nil
}

// portFree checks that the port is free, because a device that finds it in use does not report why
// it cannot come up. It waits a little for a predecessor that is exiting to release the port.
func portFree(ctx context.Context, port uint16) error {
	deadline := time.Now().Add(2 * time.Second)
	for {
		// Both families at once, as WireGuard will.
		l, err := net.ListenUDP("udp", &net.UDPAddr{Port: int(port)})
		if err == nil {
			return l.Close()
		}
		if !errors.Is(err, unix.EADDRINUSE) || time.Now().After(deadline) {
			return fmt.Errorf("use UDP port %d for WireGuard: %w; stop the program that has it (ss -ulpn) or choose another port", port, err)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// isTUN reports whether a device of this name exists and is a TUN.
func isTUN(name string) (bool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
	switch {
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		return false, nil // no device, or one without a driver name
	case err != nil:
		return false, fmt.Errorf("find the kind of device %s: %w", name, err)
	}
	return unix.ByteSliceToString(info.Driver[:]) == "tun" && unix.ByteSliceToString(info.Bus_info[:]) == "tun", nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

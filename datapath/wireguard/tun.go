package wireguard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

const tunPath = "/dev/net/tun"

// attachTUN creates the TUN and makes it persistent, or attaches the existing one. A predecessor
// that is being killed may hold it for a moment longer.
func attachTUN(ctx context.Context, args TunnelArgs) (tun.Device, error) {
	deadline := time.Now().Add(5 * time.Second)
	for {
		if starterGone(args.ReadyFD) {
			return nil, errStarterGone
		}
		f, err := openTUN(args.Device)
		if err == nil {
			return wrapTUN(f, args.Device, args.MTU)
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return nil, err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// openTUN does what tun.CreateTUN does, but closes the file on error and makes the device
// persistent.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w; load the kernel module (modprobe tun), or give the container the device", tunPath, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", tunPath, err)
	}
	if err := setTUN(fd, name); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), tunPath), nil
}

func setTUN(fd int, name string) error {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("name TUN %s: %w", name, err)
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("attach TUN %s: %w: another process serves it", name, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("attach TUN %s: %w: a device of this name exists and is not a TUN", name, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("attach TUN %s: %w; run as root or with CAP_NET_ADMIN", name, err)
	case err != nil:
		return fmt.Errorf("attach TUN %s: %w", name, err)
	}
	// Persistent: if the process dies, packets are delayed, but the address and the routes stay. So
	// a connect waits instead of failing with ENETUNREACH.
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
		return fmt.Errorf("make TUN %s persistent: %w", name, err)
	}
	// This comes before os.NewFile, so that the runtime polls the file.
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("set TUN %s non-blocking: %w", name, err)
	}
	return nil
}

func wrapTUN(f *os.File, name string, mtu int) (tun.Device, error) {
	if mtu == 0 {
		mtu = device.DefaultMTU
		if l, err := net.InterfaceByName(name); err == nil && l.MTU != 1500 {
			mtu = l.MTU // of an existing TUN; the kernel creates them with 1500
		}
	}
	t, err := tun.CreateTUNFromFile(f, mtu)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open TUN %s: %w", name, err), f.Close())
	}
	return t, nil
}

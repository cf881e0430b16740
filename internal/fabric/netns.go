package fabric

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Inside runs f on a thread that is in the network namespace, and moves the thread back afterwards.
// Processes started by f are in the namespace. A thread that cannot be moved back is discarded.
func Inside(ns netns.NsHandle, f func() error) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open own network namespace: %w", err)
	}
	defer home.Close()
	if err := netns.Set(ns); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network namespace: %w", err)
	}
	err = f()
	if back := netns.Set(home); back != nil {
		return errors.Join(err, fmt.Errorf("leave network namespace: %w", back)) // thread stays locked
	}
	runtime.UnlockOSThread()
	return err
}

// InsideNamed is Inside for a namespace given by name.
func InsideNamed(name string, f func() error) error {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", name, err)
	}
	defer ns.Close()
	return Inside(ns, f)
}

// shareNetNSDir makes the directory of named namespaces a mount of its own that passes mounts on, as
// `ip netns add` does. Otherwise the first `ip netns add` of anybody covers the namespaces that are
// there, and they can neither be entered nor removed by name.
func shareNetNSDir() error {
	if err := os.MkdirAll(NetNSDir, 0o755); err != nil {
		return err
	}
	err := unix.Mount("", NetNSDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // it is no mount yet
		if err = unix.Mount(NetNSDir, NetNSDir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", NetNSDir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("make %s a shared mount: %w", NetNSDir, err)
	}
	return nil
}

// AddNS creates a named network namespace with its loopback up.
func AddNS(name string) error {
	if err := shareNetNSDir(); err != nil {
		return err
	}
	home, err := netns.Get()
	if err != nil {
		return fmt.Errorf("open own network namespace: %w", err)
	}
	defer home.Close()
	var ns netns.NsHandle
	// Inside moves the thread back from wherever NewNamed leaves it.
	err = Inside(home, func() (err error) {
		ns, err = netns.NewNamed(name)
		return err
	})
	if err != nil {
		return fmt.Errorf("make network namespace %s: %w", name, err)
	}
	defer ns.Close()
	if err := Inside(ns, reservePort); err != nil {
		return fmt.Errorf("network namespace %s: %w", name, err)
	}
	return WithHandle(name, func(h *netlink.Handle) error { return SetUp(h, "lo") })
}

// reservePort keeps WireGuard's default port from sockets that ask for any port, in the calling
// thread's network namespace. The port lies in the ephemeral range, so a resolver's socket could
// hold it when a daemon starts.
func reservePort() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_reserved_ports", []byte("51820"), 0); err != nil {
		return fmt.Errorf("reserve WireGuard's port: %w", err)
	}
	return nil
}

// RemoveNS unmounts and removes a named network namespace. It succeeds if there is none. The kernel
// frees the namespace, and every device in it, once nothing uses it.
func RemoveNS(name string) error {
	path := filepath.Join(NetNSDir, name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount network namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	return nil
}

// WithHandle gives f a netlink socket in the namespace.
func WithHandle(name string, f func(*netlink.Handle) error) error {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", name, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("open netlink in %s: %w", name, err)
	}
	defer h.Close()
	if err := f(h); err != nil {
		return fmt.Errorf("network namespace %s: %w", name, err)
	}
	return nil
}

func SetUp(h *netlink.Handle, link string) error {
	l, err := h.LinkByName(link)
	if err != nil {
		return fmt.Errorf("find link %s: %w", link, err)
	}
	if err := h.LinkSetUp(l); err != nil {
		return fmt.Errorf("set link %s up: %w", link, err)
	}
	return nil
}

func SetDown(h *netlink.Handle, link string) error {
	l, err := h.LinkByName(link)
	if err != nil {
		return fmt.Errorf("find link %s: %w", link, err)
	}
	if err := h.LinkSetDown(l); err != nil {
		return fmt.Errorf("set link %s down: %w", link, err)
	}
	return nil
}

// AddBridge creates a bridge with an address and sets it up.
func AddBridge(h *netlink.Handle, name string, addr netip.Prefix) error {
	b := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}
	if err := h.LinkAdd(b); err != nil {
		return fmt.Errorf("add bridge %s: %w", name, err)
	}
	return AddAddr(h, name, addr)
}

// AddAddr gives a link an address and sets it up.
func AddAddr(h *netlink.Handle, link string, addr netip.Prefix) error {
	l, err := h.LinkByName(link)
	if err != nil {
		return fmt.Errorf("find link %s: %w", link, err)
	}
	a, err := netlink.ParseAddr(addr.String())
	if err != nil {
		return fmt.Errorf("address %s: %w", addr, err)
	}
	if err := h.AddrAdd(l, a); err != nil {
		return fmt.Errorf("add address %s to %s: %w", addr, link, err)
	}
	return SetUp(h, link)
}

// AddRoute routes dst via a gateway; the zero dst is the default route.
func AddRoute(h *netlink.Handle, dst netip.Prefix, via netip.Addr) error {
	r := &netlink.Route{Gw: via.AsSlice()}
	if dst.IsValid() {
		d, err := netlink.ParseIPNet(dst.Masked().String())
		if err != nil {
			return fmt.Errorf("route to %s: %w", dst, err)
		}
		r.Dst = d
	}
	if err := h.RouteReplace(r); err != nil {
		return fmt.Errorf("add route to %s via %s: %w", dst, via, err)
	}
	return nil
}

// End is one end of a cable: a device in a namespace, as a port of a bridge if one is named.
type End struct {
	NS, Link, Bridge string
	MAC              net.HardwareAddr
}

// MACOf derives a machine's hardware address from its IP address. A machine keeps it across a
// reboot, so its neighbours' caches stay valid.
func MACOf(ip netip.Addr) net.HardwareAddr { return append(net.HardwareAddr{2, 0}, ip.AsSlice()...) }

// AddCable joins two namespaces by a veth pair and sets both ends up.
func AddCable(a, b End) error {
	peer, err := netns.GetFromName(b.NS)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", b.NS, err)
	}
	defer peer.Close()
	err = WithHandle(a.NS, func(h *netlink.Handle) error {
		v := &netlink.Veth{
			LinkAttrs:     netlink.LinkAttrs{Name: a.Link, HardwareAddr: a.MAC},
			PeerName:      b.Link,
			PeerNamespace: netlink.NsFd(peer),
		}
		if err := h.LinkAdd(v); err != nil {
			return fmt.Errorf("add veth %s to %s in %s: %w", a.Link, b.Link, b.NS, err)
		}
		return plug(h, a)
	})
	if err != nil {
		return err
	}
	return WithHandle(b.NS, func(h *netlink.Handle) error { return plug(h, b) })
}

func plug(h *netlink.Handle, e End) error {
	if e.Bridge != "" {
		l, err := h.LinkByName(e.Link)
		if err != nil {
			return fmt.Errorf("find link %s: %w", e.Link, err)
		}
		b, err := h.LinkByName(e.Bridge)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", e.Bridge, err)
		}
		if err := h.LinkSetMaster(l, b); err != nil {
			return fmt.Errorf("plug %s into %s: %w", e.Link, e.Bridge, err)
		}
	}
	return SetUp(h, e.Link)
}

// MakeRouter lets the namespace, and only it, forward packets. It sends no redirects, so that its
// hosts keep to their one route.
func MakeRouter(name string) error {
	return InsideNamed(name, func() error {
		for file, value := range map[string]string{
			"ip_forward": "1", "conf/all/send_redirects": "0", "conf/default/send_redirects": "0",
		} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0); err != nil {
				return fmt.Errorf("network namespace %s: set sysctl: %w", name, err)
			}
		}
		return nil
	})
}

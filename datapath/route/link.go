package route

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// kindWireGuard and kindTUN are the link types of tunnels, as the netlink library names them.
const (
	kindWireGuard = "wireguard"
	kindTUN       = "tuntap"
)

// AddWireGuard adds a kernel WireGuard device, down and without an address. It succeeds if the
// device exists. The error satisfies errors.Is(err, errors.ErrUnsupported) if the kernel has no
// WireGuard.
func (r *Router) AddWireGuard(name string) error {
	if name == "" || len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("add device %q: the name must have 1 to %d characters", name, unix.IFNAMSIZ-1)
	}
	if exists, err := isWireGuard(name); exists || err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	err := netlink.LinkAdd(&netlink.Wireguard{LinkAttrs: attrs})
	switch {
	case errors.Is(err, unix.EEXIST): // another process added it since the check
		_, err := isWireGuard(name)
		return err
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("add WireGuard device %s: %w; run as root or with CAP_NET_ADMIN", name, err)
	case err != nil:
		return fmt.Errorf("add WireGuard device %s: %w", name, err)
	}
	r.log.Info("added WireGuard device", "device", name)
	return nil
}

// isWireGuard reports whether the device exists. A device of another kind is an error.
func isWireGuard(name string) (bool, error) {
	l, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	switch {
	case errors.As(err, &missing):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find device %s: %w", name, err)
	case l.Type() == kindWireGuard:
		return true, nil
	}
	if err := foreign(l); err != nil {
		return false, err
	}
	return false, fmt.Errorf("device %s exists and is of kind %q, not %q; choose another name or delete it (ip link delete %s)",
		name, l.Type(), kindWireGuard, name)
}

// SetUp sets the device's MTU (bytes; 0 leaves it as it is) and address, and sets the device up. A device
// that was renamed gets its name back, with everything that it has; one that is not strait's is refused
// and left as it is. If there is no device, the error satisfies errors.Is(err, unix.ENODEV).
//
// The address adds no route of its own, because routes belong in strait's table. If addr is
// invalid, the addresses stay as they are. Otherwise the device's other addresses are removed once
// addr is there, except for link-local ones of IPv4. IPv6 link-local addresses are removed, and the
// kernel makes none.
func (r *Router) SetUp(name string, mtu int, addr netip.Prefix) error {
	l, err := r.find(name)
	if err != nil {
		return err
	}
	r.remake(l.Attrs().Index, mtu)
	if mtu != 0 && l.Attrs().MTU != mtu {
		if err := netlink.LinkSetMTU(l, mtu); err != nil {
			return fmt.Errorf("set MTU %d of device %s: %w", mtu, name, err)
		}
	}
	if addr.IsValid() {
		if err := setAddress(l, addr); err != nil {
			return err
		}
	}
	if err := withoutLinkLocal(l); err != nil {
		return err
	}
	if l.Attrs().RawFlags&unix.IFF_UP == 0 {
		if err := netlink.LinkSetUp(l); err != nil {
			return fmt.Errorf("set device %s up: %w", name, err)
		}
	}
	return nil
}

// withoutLinkLocal keeps a device without IPv6 link-local addresses, for which a tunnel has no use.
// Other software takes a device that has one for a way out of the node. Cilium then attaches its
// programs to it, and with bpf.masquerade loses what pods send into the tunnel. The kernel does the
// same for its own WireGuard devices.
//
// It sets the mode only where that changes something, because the kernel reports the device as
// changed each time.
func withoutLinkLocal(l netlink.Link) error {
	name := l.Attrs().Name
	have, err := retryInterrupted(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_V6) })
	if err != nil {
		return fmt.Errorf("list addresses of device %s: %w", name, err)
	}
	have = slices.DeleteFunc(have, func(a netlink.Addr) bool { return !a.IP.IsLinkLocalUnicast() })
	if len(have) == 0 && l.Attrs().RawFlags&unix.IFF_UP != 0 {
		return nil
	}
	err = netlink.LinkSetIP6AddrGenMode(l, nl.IN6_ADDR_GEN_MODE_NONE)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) { // no IPv6, and no such addresses
		return fmt.Errorf("set device %s to have no link-local address: %w", name, err)
	}
	return removeAddresses(l, have)
}

// Claim gives a device of strait's that was renamed its name back, and refuses a device of the name that is
// not strait's. It succeeds if there is none.
func (r *Router) Claim(name string) error {
	if _, err := r.find(name); !errors.Is(err, unix.ENODEV) {
		return err
	}
	return nil
}

// find returns the device of strait's of this name. If there is none, but the device that had the name
// last is there under another one, it is renamed: it still has the peers, and their sessions.
func (r *Router) find(name string) (netlink.Link, error) {
	l, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if !errors.As(err, &missing) {
		if err != nil {
			return nil, fmt.Errorf("find device %s: %w", name, err)
		}
		return l, foreign(l)
	}
	last := r.watched().index
	if last == 0 {
		return nil, fmt.Errorf("find device %s: %w", name, unix.ENODEV)
	}
	if l, err = netlink.LinkByIndex(last); err != nil || foreign(l) != nil {
		return nil, fmt.Errorf("find device %s: %w", name, unix.ENODEV)
	}
	r.log.Warn("the tunnel's device was renamed by another program: it gets its name back", "device", name, "name", l.Attrs().Name)
	err = netlink.LinkSetName(l, name)
	if errors.Is(err, unix.EBUSY) { // before Linux 6.3, a device that is up cannot be renamed
		err = errors.Join(netlink.LinkSetDown(l), netlink.LinkSetName(l, name))
	}
	if err != nil {
		return nil, fmt.Errorf("rename device %s to %s: %w", l.Attrs().Name, name, err)
	}
	return netlink.LinkByIndex(last)
}

// foreign returns an error if a link is not one that strait makes: WireGuard, or a TUN.
func foreign(l netlink.Link) error {
	kind := l.Type()
	if tun, is := l.(*netlink.Tuntap); is && tun.Mode == netlink.TUNTAP_MODE_TAP {
		kind = "tap"
	}
	if kind == kindWireGuard || kind == kindTUN {
		return nil
	}
	name := l.Attrs().Name
	return fmt.Errorf("device %s is of kind %q, so it is not strait's and is left alone; delete it (ip link delete %s) or set mesh.device to another name", name, kind, name)
}

func setAddress(l netlink.Link, want netip.Prefix) error {
	name := l.Attrs().Name
	have, err := retryInterrupted(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list addresses of device %s: %w", name, err)
	}
	found := false
	var others []netlink.Addr
	for _, a := range have {
		switch p := toPrefix(a.IPNet, 0); {
		case p == want:
			found = true
		case !p.Addr().IsLinkLocalUnicast():
			others = append(others, a)
		}
	}
	if !found {
		flags := unix.IFA_F_NOPREFIXROUTE
		if want.Addr().Is6() {
			// A tunnel has no other hosts, and a tentative address cannot be a source.
			flags |= unix.IFA_F_NODAD
		}
		if err := netlink.AddrReplace(l, &netlink.Addr{IPNet: toIPNet(want), Flags: flags}); err != nil {
			return fmt.Errorf("add address %s to device %s: %w", want, name, err)
		}
	}
	return removeAddresses(l, others)
}

func removeAddresses(l netlink.Link, all []netlink.Addr) error {
	for _, a := range all {
		if err := netlink.AddrDel(l, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove address %s from device %s: %w", a.IPNet, l.Attrs().Name, err)
		}
	}
	return nil
}

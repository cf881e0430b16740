package route

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
)

// toIPNet, toAddr, toPrefix and fromNetlink convert between the types of netip and those of the netlink
// library: net.IP is used nowhere else.
func toIPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func toAddr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip) // a nil IP becomes the zero Addr
	return a.Unmap()
}

// toPrefix converts a destination. The library can return nil for a default route, so family tells
// which one it is.
func toPrefix(n *net.IPNet, family int) netip.Prefix {
	if n == nil {
		zero := netip.IPv4Unspecified()
		if family == unix.AF_INET6 {
			zero = netip.IPv6Unspecified()
		}
		return netip.PrefixFrom(zero, 0)
	}
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(toAddr(n.IP), ones)
}

func fromNetlink(r netlink.Route, family int) kernelRoute {
	e := kernelRoute{
		Route:  datapath.Route{Dst: toPrefix(r.Dst, family), Src: toAddr(r.Src), MTU: r.MTU},
		link:   r.LinkIndex,
		metric: r.Priority,
	}
	if r.Type == unix.RTN_UNREACHABLE {
		// IPv6 reports the loopback device here, which has no meaning.
		e.Unreachable, e.link, e.Src, e.MTU = true, 0, netip.Addr{}, 0
	}
	return e
}

func (c Config) toNetlink(e kernelRoute) *netlink.Route {
	r := &netlink.Route{
		Dst:      toIPNet(e.Dst),
		Table:    c.Table,
		Protocol: Protocol,
		Priority: e.metric,
	}
	switch {
	case e.Unreachable:
		r.Type = unix.RTN_UNREACHABLE
	default:
		r.Type = unix.RTN_UNICAST
		r.LinkIndex = e.link
		r.Scope = netlink.SCOPE_LINK
		r.MTU = e.MTU
		// When the kernel forwards IPv6, it heeds the MTU of a route only if it is locked. An IPv4
		// route must not be locked, because then packets may be fragmented inside the tunnel.
		r.MTULock = e.MTU > 0 && e.Dst.Addr().Is6()
	}
	if e.Src.IsValid() {
		r.Src = e.Src.AsSlice()
	}
	return r
}

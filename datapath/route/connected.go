package route

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// connecting are the protocols of the routes that say which networks a machine is connected to. The
// routes of a routing daemon, of which there can be a million, have others.
var connecting = []netlink.RouteProtocol{
	unix.RTPROT_KERNEL, unix.RTPROT_BOOT, unix.RTPROT_STATIC, unix.RTPROT_RA, unix.RTPROT_DHCP,
}

// Connected returns the networks that the machine's links lead to without a gateway, and the
// addresses of its default gateways, sorted. Networks behind the tunnel are not among them. While
// Watch runs, the answer is cached.
func (r *Router) Connected() ([]netip.Prefix, error) {
	have, version := r.known.haveConnected()
	if have != nil {
		return have, nil
	}
	h, err := open()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	tunnel, _ := r.deviceIndex(h)                  // 0, which no route has, while there is no device
	if err := h.SetStrictCheck(true); err != nil { // see listOurs
		return nil, fmt.Errorf("set strict checking on netlink socket: %w", err)
	}
	out := []netip.Prefix{}
	for _, family := range families {
		for _, protocol := range connecting {
			found, err := routesOf(h, unix.RT_TABLE_MAIN, family, protocol)
			if err != nil {
				return nil, err
			}
			for _, route := range found {
				if p := network(route, family); p.IsValid() && route.LinkIndex != tunnel {
					out = append(out, p)
				}
			}
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	out = slices.Compact(out)
	r.known.keep(version, func() { r.known.connected = out })
	return out, nil
}

// routesOf returns the routes of a protocol in a table of the kernel.
func routesOf(h *netlink.Handle, table, family int, protocol netlink.RouteProtocol) ([]netlink.Route, error) {
	filter := &netlink.Route{Table: table, Protocol: protocol}
	rs, err := retryInterrupted(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(family, filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
	})
	switch {
	case errors.Is(err, unix.ENOENT): // the table does not exist yet
	case family == unix.AF_INET6 && noFamily(err):
	case err != nil:
		return nil, fmt.Errorf("list %s routes: %w", familyName(family), err)
	}
	return rs, nil
}

// network returns the network that a route shows the machine connected to: its destination, or for a default
// route its gateway. It is invalid if the route shows none.
func network(r netlink.Route, family int) netip.Prefix {
	dst, gateway := toPrefix(r.Dst, family), toAddr(r.Gw)
	switch {
	case r.Type != unix.RTN_UNICAST:
		return netip.Prefix{}
	case dst.Bits() == 0 && gateway.IsValid():
		dst = netip.PrefixFrom(gateway, gateway.BitLen())
	case dst.Bits() == 0, gateway.IsValid(), r.Via != nil, len(r.MultiPath) > 0:
		return netip.Prefix{}
	}
	if dst.Addr().IsLinkLocalUnicast() {
		return netip.Prefix{}
	}
	return dst
}

// connects reports whether a route message may change the result of Connected.
func connects(data []byte, attrs map[uint16][]byte) bool {
	const protocol = 5 // offset in struct rtmsg
	return tableOf(data, attrs) == unix.RT_TABLE_MAIN && slices.Contains(connecting, netlink.RouteProtocol(data[protocol]))
}

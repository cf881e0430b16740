package route

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// reconcileLocal makes Config.Local this machine's own, by a route of type local each, as the kernel makes for a
// device's address. No device shows them, so that nobody takes them for the node's address. They stay without strait:
// a packet to them is refused then, and does not leave the machine.
func (r *Router) reconcileLocal(h *netlink.Handle, prune bool, v *verdicts) {
	have, err := r.cfg.heldLocal()
	if err != nil {
		v.failed(err)
		return
	}
	for _, a := range r.cfg.Local {
		if slices.Contains(have, a) {
			continue
		}
		v.on("address "+a.String(), r.putLocal(h, a), "give dns.listen an address that no other part of this machine has")
	}
	for _, a := range have {
		if prune && !slices.Contains(r.cfg.Local, a) {
			v.on("address "+a.String(), r.removeLocal(h, a), "see what holds it (ip route show table local)")
		}
	}
}

func (r *Router) putLocal(h *netlink.Handle, a netip.Addr) error {
	lo, err := h.LinkByName("lo")
	if err == nil {
		route := r.cfg.localRoute(a)
		route.LinkIndex = lo.Attrs().Index
		err = h.RouteAdd(route)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make %s an address of this machine: %w", a, err)
	}
	r.log.Debug("made an address of this machine", "address", a)
	return nil
}

func (r *Router) removeLocal(h *netlink.Handle, a netip.Addr) error {
	if err := h.RouteDel(r.cfg.localRoute(a)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("have %s no longer as an address of this machine: %w", a, err)
	}
	r.log.Debug("no longer an address of this machine", "address", a)
	return nil
}

// localRoute has the number of strait's table as its metric: several daemons on one machine share the kernel's local table.
func (c Config) localRoute(a netip.Addr) *netlink.Route {
	return &netlink.Route{
		Dst: toIPNet(netip.PrefixFrom(a, a.BitLen())), Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL,
		Scope: netlink.SCOPE_HOST, Protocol: Protocol, Priority: c.Table,
	}
}

// heldLocal are the addresses that this daemon, or one before it, made this machine's.
func (c Config) heldLocal() (held []netip.Addr, err error) {
	err = c.listOurs(unix.RT_TABLE_LOCAL, func(r netlink.Route, family int) {
		if dst := toPrefix(r.Dst, family); r.Type == unix.RTN_LOCAL && r.Priority == c.Table && dst.IsSingleIP() {
			held = append(held, dst.Addr())
		}
	})
	return held, err
}

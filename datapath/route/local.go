package route

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/problem"
)

// reconcileLocal makes each address of Config.Local this machine's own. It adds a route of type
// local, as the kernel does for a device's address. No device has these addresses, so that no
// program takes them for the node's address. They stay when strait stops: a packet to them is then
// refused, and does not leave the machine.
func (r *Router) reconcileLocal(h *netlink.Handle, prune bool, v *verdicts) {
	have, err := r.cfg.installedLocal()
	if err != nil {
		v.failed(err)
		return
	}
	for _, a := range r.cfg.Local {
		if slices.Contains(have, a) {
			continue
		}
		v.on(problem.Named("address", a.String()), r.putLocal(h, a), "give dns.listen an address that no other part of this machine has")
	}
	for _, a := range have {
		if prune && !slices.Contains(r.cfg.Local, a) {
			v.on(problem.Named("address", a.String()), r.removeLocal(h, a), "check what holds it (ip route show table local)")
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
		return fmt.Errorf("add address %s to this machine: %w", a, err)
	}
	r.log.Debug("added local address", "address", a)
	return nil
}

func (r *Router) removeLocal(h *netlink.Handle, a netip.Addr) error {
	if err := h.RouteDel(r.cfg.localRoute(a)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove address %s from this machine: %w", a, err)
	}
	r.log.Debug("removed local address", "address", a)
	return nil
}

// localRoute returns the route that makes a this machine's own. Its metric is the number of
// strait's table, because several daemons on one machine share the kernel's local table.
func (c Config) localRoute(a netip.Addr) *netlink.Route {
	return &netlink.Route{
		Dst: toIPNet(netip.PrefixFrom(a, a.BitLen())), Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL,
		Scope: netlink.SCOPE_HOST, Protocol: Protocol, Priority: c.Table,
	}
}

// installedLocal returns the addresses that this daemon, or an earlier one, made this machine's own.
func (c Config) installedLocal() (addrs []netip.Addr, err error) {
	err = c.listOurs(unix.RT_TABLE_LOCAL, func(r netlink.Route, family int) {
		if dst := toPrefix(r.Dst, family); r.Type == unix.RTN_LOCAL && r.Priority == c.Table && dst.IsSingleIP() {
			addrs = append(addrs, dst.Addr())
		}
	})
	return addrs, err
}

package route

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// Reconcile makes strait's table hold want, has one rule per IP family lead to it, and makes the
// addresses of Config.Local this machine's own. New and changed routes are put before old ones are
// removed; if prune is false nothing is removed.
//
// A route or address that the kernel refuses is left out and is a Problem; the next Reconcile tries
// it again. An error means that the Router itself cannot work: netlink does not answer, the device
// is gone, or the rule cannot be added.
//
// Routes of another protocol number are not changed, even in strait's own table; those there are
// Problems. So are packets that do not go into the tunnel all the same, because another program's rule or
// route takes them.
func (r *Router) Reconcile(want []datapath.Route, prune bool) ([]problem.Problem, error) {
	h, err := open()
	if err != nil {
		return nil, err
	}
	defer h.Close()

	r.remember(want)
	have, err := r.cfg.installed()
	if err != nil {
		return nil, err
	}
	link, linkErr := r.deviceIndex(h)
	change, problems := diff(have, want, link)
	v := verdicts{problems: problems}
	stranded := 0 // a missing device is one error, however many routes lead into it
	for _, e := range change.Put {
		if !e.Unreachable && linkErr != nil {
			stranded++
			continue
		}
		r.put(h, e, &v)
	}
	if stranded > 0 {
		v.failed(fmt.Errorf("put %d routes: %w", stranded, linkErr))
	}
	if !prune {
		v.failed(r.cfg.reportOthers(&v))
	}
	r.reconcileLocal(h, prune, &v)
	// The rule comes after the routes, so that no packet sees a partly filled table.
	for _, family := range families {
		v.failed(r.reconcileRule(h, family, prune))
	}
	if !prune && linkErr == nil && len(v.errs) == 0 {
		r.reportStrays(h, want, link, &v)
	}
	if prune {
		for _, e := range change.Remove {
			r.remove(h, e, &v)
		}
	}
	return v.problems, errors.Join(v.errs...)
}

// Routes returns strait's routes in the kernel, sorted by destination. Routes into another device
// than strait's are included.
func (r *Router) Routes() ([]datapath.Route, error) {
	have, err := r.cfg.installed()
	if err != nil {
		return nil, err
	}
	routes := make([]datapath.Route, len(have))
	for i, e := range have {
		routes[i] = e.Route
	}
	return routes, nil
}

// open returns a netlink handle in the network namespace of this thread.
func open() (*netlink.Handle, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink socket: %w", err)
	}
	return h, nil
}

// installed reads the routes of strait's protocol in strait's table, of both families, sorted.
func (c Config) installed() (have []kernelRoute, err error) {
	err = c.listOurs(c.Table, func(r netlink.Route, family int) { have = append(have, fromNetlink(r, family)) })
	slices.SortFunc(have, func(a, b kernelRoute) int {
		return cmp.Or(a.Dst.Addr().Compare(b.Dst.Addr()), cmp.Compare(a.Dst.Bits(), b.Dst.Bits()),
			cmp.Compare(a.metric, b.metric))
	})
	return have, err
}

// listOurs calls each with the routes of strait's protocol in a table, of both families.
func (c Config) listOurs(table int, each func(r netlink.Route, family int)) error {
	h, err := open()
	if err != nil {
		return err
	}
	defer h.Close()
	// With strict checking the kernel itself filters by table, so that a node with a full BGP feed
	// does not send all of it. This needs a socket of its own, because the request by which the
	// library lists rules does not pass the check.
	if err := h.SetStrictCheck(true); err != nil {
		return fmt.Errorf("set strict checking on netlink socket: %w", err)
	}
	return list(h, &netlink.Route{Table: table, Protocol: Protocol}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL, each)
}

// list calls each with the routes of both families that pass a filter.
func list(h *netlink.Handle, filter *netlink.Route, mask uint64, each func(r netlink.Route, family int)) error {
	for _, family := range families {
		rs, err := retryInterrupted(func() ([]netlink.Route, error) { return h.RouteListFiltered(family, filter, mask) })
		switch {
		case errors.Is(err, unix.ENOENT): // the table does not exist yet
		case family == unix.AF_INET6 && noFamily(err): // a kernel without IPv6
		case err != nil:
			return fmt.Errorf("list %s routes of table %d: %w", familyName(family), filter.Table, err)
		}
		for _, r := range rs {
			each(r, family)
		}
	}
	return nil
}

func (r *Router) put(h *netlink.Handle, e kernelRoute, v *verdicts) {
	err := h.RouteReplace(r.cfg.toNetlink(e))
	if err == nil {
		r.log.Debug("put route", "route", e.String(), "table", r.cfg.Table)
		return
	}
	try := "correct the prefix in the record of its node; everything else is in force"
	if errors.Is(err, unix.EINVAL) && e.Src.IsValid() {
		try = fmt.Sprintf("check whether %s is an address of this node (ip address)", e.Src)
	}
	v.on(problem.Named("route", e.Dst.String()), fmt.Errorf("put %s into table %d: %w", e, r.cfg.Table, err), try)
}

func (r *Router) remove(h *netlink.Handle, e kernelRoute, v *verdicts) {
	err := h.RouteDel(r.cfg.toNetlink(e))
	if err != nil && !errors.Is(err, unix.ESRCH) {
		v.on(problem.Named("route", e.Dst.String()), fmt.Errorf("remove %s from table %d: %w", e, r.cfg.Table, err),
			fmt.Sprintf("check what holds it (ip route show table %d)", r.cfg.Table))
		return
	}
	r.log.Debug("removed route", "route", e.String(), "table", r.cfg.Table)
}

func (r *Router) deviceIndex(h *netlink.Handle) (int, error) {
	l, err := h.LinkByName(r.cfg.Device)
	if err != nil {
		return 0, fmt.Errorf("find device %s: %w", r.cfg.Device, err)
	}
	// Nothing is led into a device that another program made under the name.
	if err := foreign(l); err != nil {
		return 0, err
	}
	return l.Attrs().Index, nil
}

func (r *Router) remember(want []datapath.Route) {
	wanted := make(map[netip.Prefix]bool, len(want)+len(r.cfg.Local))
	for _, a := range r.cfg.Local {
		wanted[netip.PrefixFrom(a, a.BitLen())] = true
	}
	for _, w := range want {
		wanted[w.Dst.Masked()] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = wanted
}

// retryInterrupted repeats a dump that the kernel reports as inconsistent because the table changed
// meanwhile. After some tries it accepts the last answer: the next Reconcile repairs what is wrong.
func retryInterrupted[T any](dump func() (T, error)) (T, error) {
	for range 5 {
		if v, err := dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return v, err
		}
	}
	v, err := dump()
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		err = nil
	}
	return v, err
}

// noFamily reports whether the kernel was built or booted without the IP family.
func noFamily(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}

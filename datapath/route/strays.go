package route

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// maxLookups is how many destinations one Reconcile looks up. The next one goes on with others.
const maxLookups = 256

// stray is a destination whose packets do not go into the tunnel.
type stray struct {
	addr netip.Addr
	way  string // where they go instead
}

// reportStrays adds a Problem if packets to wanted destinations do not go into the tunnel, because a rule
// before strait's, or a longer route, takes them. Such rules and routes are left alone.
func (r *Router) reportStrays(h *netlink.Handle, want []datapath.Route, tunnel int, v *verdicts) {
	var first stray
	n := 0
	for _, a := range r.next(tunneled(want)) {
		s, strays, err := wayTo(h, a, tunnel)
		if err != nil {
			v.failed(err)
			return
		}
		if strays {
			if n++; n == 1 {
				first = s
			}
		}
	}
	if n == 0 {
		return
	}
	more := ""
	if n > 1 {
		more = fmt.Sprintf(" (and %d more)", n-1)
	}
	v.problems = append(v.problems, problem.Problem{
		Code: problem.RouteBypassed, Object: "ip rules",
		Message: fmt.Sprintf("packets to %s%s, a pod of another cluster, do not go into the tunnel: %s", first.addr, more, first.way),
		Try: fmt.Sprintf("find the rule with a priority below %d, or the longer route, that takes them (ip rule; ip route get %s), and remove it or narrow it",
			r.cfg.Priority, first.addr),
	})
}

// tunneled returns an address of each destination that leads into the tunnel, where no longer route leads
// elsewhere.
func tunneled(want []datapath.Route) (out []netip.Addr) {
	closed := slices.DeleteFunc(slices.Clone(want), func(w datapath.Route) bool { return !w.Unreachable }) // few
	for _, w := range want {
		if w.Unreachable {
			continue
		}
		a := w.Dst.Addr()
		if next := a.Next(); w.Dst.Contains(next) {
			a = next
		}
		inside := func(c datapath.Route) bool { return c.Dst.Bits() > w.Dst.Bits() && c.Dst.Contains(a) }
		if !slices.ContainsFunc(closed, inside) {
			out = append(out, a)
		}
	}
	return out
}

// next returns the addresses whose turn it is.
func (r *Router) next(all []netip.Addr) []netip.Addr {
	if len(all) <= maxLookups {
		return all
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.lookedUp % len(all)
	r.lookedUp = (from + maxLookups) % len(all)
	return slices.Concat(all, all)[from : from+maxLookups]
}

// wayTo asks the kernel which way packets from this machine take.
func wayTo(h *netlink.Handle, a netip.Addr, tunnel int) (s stray, strays bool, err error) {
	routes, err := h.RouteGet(a.AsSlice())
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
		return stray{a, err.Error()}, true, nil // what rules of type unreachable, prohibit and blackhole answer
	case err != nil:
		return s, false, fmt.Errorf("look up the route to %s: %w", a, err)
	case len(routes) > 0 && routes[0].LinkIndex == tunnel:
		return s, false, nil
	case len(routes) == 0:
		return stray{a, "there is no route"}, true, nil
	}
	way := fmt.Sprintf("they go to device %d", routes[0].LinkIndex)
	if link, err := h.LinkByIndex(routes[0].LinkIndex); err == nil {
		way = "they go to " + link.Attrs().Name
	}
	if routes[0].Gw != nil {
		way += " via " + routes[0].Gw.String()
	}
	return stray{a, way}, true, nil
}

package route

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
)

// known caches answers of the kernel until Watch receives a message that invalidates them. While no
// Watch runs nothing is cached, and each question goes to the kernel.
type known struct {
	mu       sync.Mutex
	watching bool
	version  uint64       // grows whenever something is forgotten
	addrs    []netip.Addr // nil: unknown
	// connected is nil while unknown.
	connected []netip.Prefix
	// underlays are sorted by destination.
	underlays []underlay
}

// underlay is how packets to a destination leave.
type underlay struct {
	dst  netip.Addr
	mtu  int // the smaller one of the link's and the route's; 0 if there is no route
	link int // index of the link
	// linkMTU is the MTU of the link, whatever the route has.
	linkMTU int
}

// watch starts or stops caching.
func (k *known) watch(on bool) {
	k.forget()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watching = on
}

func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version++
	k.addrs, k.connected, k.underlays = nil, nil, nil
}

// have returns what is cached, and a version to pass to keep.
func (k *known) have() (addrs []netip.Addr, underlays []underlay, version uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.addrs, k.underlays, k.version
}

// haveConnected returns what is cached, and a version to pass to keep.
func (k *known) haveConnected() (connected []netip.Prefix, version uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.connected, k.version
}

// keep calls set, unless something was forgotten since version: then the answer can be out of date.
func (k *known) keep(version uint64, set func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watching && k.version == version {
		set()
	}
}

// heard processes one message from the kernel. It reports whether the MTU of an underlay may have
// changed.
func (k *known) heard(typ uint16, data []byte, own uint32) bool {
	switch typ {
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		k.mu.Lock()
		defer k.mu.Unlock()
		k.version++
		k.addrs, k.connected = nil, nil
		return false
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		if attrs, ok := attributes(data, unix.SizeofRtMsg); ok && connects(data, attrs) {
			k.disconnect()
		}
	case unix.RTM_NEWLINK, unix.RTM_DELLINK: // the kernel drops a link's IPv4 routes without a message
		k.disconnect()
	default:
		return false
	}
	_, underlays, _ := k.have()
	if len(underlays) == 0 || !concernsUnderlay(underlays, typ, data, own) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version++
	k.underlays = nil
	return true
}

func (k *known) disconnect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version++
	k.connected = nil
}

// concernsUnderlay reports whether the message can change an underlay: a link has another MTU or is
// gone, or a route that covers a destination was added or removed outside strait's own table.
func concernsUnderlay(underlays []underlay, typ uint16, data []byte, own uint32) bool {
	if typ == unix.RTM_NEWLINK || typ == unix.RTM_DELLINK {
		attrs, ok := attributes(data, unix.SizeofIfInfomsg)
		if !ok {
			return false
		}
		const indexOffset = 4 // in struct ifinfomsg
		index, mtu := int(binary.NativeEndian.Uint32(data[indexOffset:])), attrs[unix.IFLA_MTU]
		changed := typ == unix.RTM_DELLINK
		return slices.ContainsFunc(underlays, func(u underlay) bool {
			return u.link == index && (changed || len(mtu) == 4 && int(binary.NativeEndian.Uint32(mtu)) != u.linkMTU)
		})
	}
	attrs, ok := attributes(data, unix.SizeofRtMsg)
	if !ok || tableOf(data, attrs) == own {
		return false
	}
	dst := destination(data, attrs)
	i, _ := slices.BinarySearchFunc(underlays, dst.Masked().Addr(), func(u underlay, a netip.Addr) int { return u.dst.Compare(a) })
	return i < len(underlays) && dst.Contains(underlays[i].dst)
}

// Forget drops everything that is cached, so that the next question goes to the kernel.
func (r *Router) Forget() { r.known.forget() }

// Underlay returns a channel that receives after the result of UnderlayMTUs may have changed, while
// Watch runs.
func (r *Router) Underlay() <-chan struct{} { return r.underlay }

// Addresses returns the addresses of this machine's devices that can be the source of packets.
func (r *Router) Addresses() ([]netip.Addr, error) {
	own, _, version := r.known.have()
	if own != nil {
		return own, nil
	}
	addrs, err := retryInterrupted(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	own = []netip.Addr{}
	for _, a := range addrs {
		// The kernel uses neither as a source: they are not (yet) proved unique on their link.
		if a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 {
			own = append(own, toAddr(a.IP))
		}
	}
	r.known.keep(version, func() { r.known.addrs = own })
	return own, nil
}

// UnderlayMTUs returns, for each destination, the size in bytes of the largest packet that can leave
// for it. That is the MTU of its link, or that of its route if the route has a smaller one, for
// example because the kernel has learnt that the path is narrower. It is 0 for a destination without
// a route. While Watch runs, only new destinations are looked up.
func (r *Router) UnderlayMTUs(dsts []netip.Addr) ([]int, error) {
	_, old, version := r.known.have()
	var h *netlink.Handle
	links := map[int]int{}
	now := make([]underlay, 0, len(dsts))
	mtus := make([]int, 0, len(dsts))
	for _, dst := range dsts {
		i, found := slices.BinarySearchFunc(old, dst, func(u underlay, a netip.Addr) int { return u.dst.Compare(a) })
		if found {
			now = append(now, old[i])
		} else {
			if h == nil {
				var err error
				if h, err = open(); err != nil {
					return nil, err
				}
				defer h.Close()
			}
			now = append(now, lookUp(h, dst, links))
		}
		mtus = append(mtus, now[len(now)-1].mtu)
	}
	slices.SortFunc(now, func(a, b underlay) int { return a.dst.Compare(b.dst) })
	r.known.keep(version, func() { r.known.underlays = now })
	return mtus, nil
}

// lookUp asks the kernel for the route of the tunnel's packets to a destination. links caches the
// MTUs of links, by index.
func lookUp(h *netlink.Handle, dst netip.Addr, links map[int]int) underlay {
	u := underlay{dst: dst}
	if !dst.IsValid() {
		return u
	}
	routes, err := h.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{Mark: datapath.TunnelMark})
	if err != nil || len(routes) == 0 {
		return u
	}
	u.link = routes[0].LinkIndex
	mtu, asked := links[u.link]
	if !asked {
		l, err := h.LinkByIndex(u.link)
		if err != nil {
			return u
		}
		mtu = l.Attrs().MTU
		links[u.link] = mtu
	}
	u.mtu, u.linkMTU = mtu, mtu
	if m := routes[0].MTU; m > 0 {
		u.mtu = min(mtu, m)
	}
	return u
}

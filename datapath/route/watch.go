package route

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/notify"
)

// watchGroups are the kernel's multicast groups that report lost routes. They include links and
// addresses: the kernel drops IPv4 routes of a device that goes down, or of a source address that
// is removed, without a message about the routes.
var watchGroups = []uint{
	unix.RTNLGRP_LINK,
	unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
	unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
	unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
}

// Watch signals on changed when something that the last Reconcile put may be gone: a wanted route
// or the rule was removed or replaced, the device went down, lost its carrier (a userspace tunnel
// whose process died) or was deleted, or an address of the node was added or removed. It also
// signals once when it starts to listen, so that no earlier change is missed. It blocks until ctx
// is done, and then returns nil. While it runs, Addresses and UnderlayMTUs cache their answers.
func (r *Router) Watch(ctx context.Context, changed notify.Signal) error {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, watchGroups...)
	if err != nil {
		return fmt.Errorf("subscribe to netlink route messages: %w", err)
	}
	stop := context.AfterFunc(ctx, s.Close) // unblocks Receive
	defer func() {
		if stop() {
			s.Close()
		}
	}()
	r.known.watch(true)
	defer r.known.watch(false)
	changed.Poke()
	for {
		msgs, from, err := s.Receive()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENOBUFS): // messages were lost, so anything may have happened
			r.known.forget()
			r.underlay.Poke()
			changed.Poke()
			continue
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("receive netlink route messages: %w", err)
		case from.Pid != nl.PidKernel:
			continue
		}
		w := r.watched()
		for _, m := range msgs {
			if r.known.heard(m.Header.Type, m.Data, w.table) {
				r.underlay.Poke()
			}
			if w.concerns(m.Header.Type, m.Data) {
				r.log.Debug("the kernel's routes changed", "message", m.Header.Type)
				changed.Poke()
			}
		}
	}
}

// watched is what messages are compared with.
type watched struct {
	device string
	table  uint32
	wanted map[netip.Prefix]bool // replaced as a whole, never changed
	index  int
	mtu    int
}

func (r *Router) watched() watched {
	r.mu.Lock()
	defer r.mu.Unlock()
	return watched{device: r.cfg.Device, table: uint32(r.cfg.Table), wanted: r.wanted, index: r.index, mtu: r.mtu}
}

// remake remembers which device SetUp found, and the MTU that it gives it.
func (r *Router) remake(index, mtu int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index, r.mtu = index, mtu
}

// concerns reports whether one rtnetlink message may mean the loss of something wanted. A message
// that cannot be parsed does not count.
func (w watched) concerns(typ uint16, data []byte) bool {
	switch typ {
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return w.concernsRoute(typ, data)
	case unix.RTM_DELRULE, unix.RTM_NEWRULE: // one of another priority or with conditions can hide ours
		attrs, ok := attributes(data, unix.SizeofRtMsg)
		return ok && w.wanted != nil && tableOf(data, attrs) == w.table
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return w.concernsLink(typ, data)
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		attrs, ok := attributes(data, unix.SizeofIfAddrmsg)
		if !ok {
			return false
		}
		a, ok := netip.AddrFromSlice(attrs[unix.IFA_ADDRESS])
		return ok && !a.IsLinkLocalUnicast()
	}
	return false
}

// concernsRoute reports whether a wanted route was removed, or another program put a route to the
// same destination.
func (w watched) concernsRoute(typ uint16, data []byte) bool {
	attrs, ok := attributes(data, unix.SizeofRtMsg)
	if !ok {
		return false
	}
	// Addresses that strait made this machine's own are in the kernel's local table.
	if table := tableOf(data, attrs); table != w.table && table != unix.RT_TABLE_LOCAL {
		return false
	}
	const protocol = 5 // offset in struct rtmsg
	ours := data[protocol] == Protocol
	return w.wanted[destination(data, attrs)] && ours == (typ == unix.RTM_DELROUTE)
}

// destination returns the destination of a route message. It is invalid if it has more bits than
// its address.
func destination(data []byte, attrs map[uint16][]byte) netip.Prefix {
	const dstLen = 1 // offset in struct rtmsg
	dst, ok := netip.AddrFromSlice(attrs[unix.RTA_DST])
	if !ok { // a default route has no destination attribute
		dst = netip.IPv4Unspecified()
		if data[0] == unix.AF_INET6 {
			dst = netip.IPv6Unspecified()
		}
	}
	return netip.PrefixFrom(dst, int(data[dstLen]))
}

// concernsLink reports whether the device is gone, down, renamed or replaced, has another MTU, or no
// process serves it.
func (w watched) concernsLink(typ uint16, data []byte) bool {
	attrs, ok := attributes(data, unix.SizeofIfInfomsg)
	if !ok {
		return false
	}
	const indexOffset, flagsOffset, alive = 4, 8, unix.IFF_UP | unix.IFF_LOWER_UP
	named := unix.ByteSliceToString(attrs[unix.IFLA_IFNAME]) == w.device
	same := int(binary.NativeEndian.Uint32(data[indexOffset:])) == w.index
	switch {
	case !named:
		return same && w.index != 0
	case typ == unix.RTM_DELLINK, w.index != 0 && !same:
		return true
	case same && w.mtu != 0 && len(attrs[unix.IFLA_MTU]) == 4 && int(binary.NativeEndian.Uint32(attrs[unix.IFLA_MTU])) != w.mtu:
		return true
	}
	return binary.NativeEndian.Uint32(data[flagsOffset:])&alive != alive
}

// attributes returns the attributes of a message by type. If a type is repeated, the last one
// counts. It returns false if data is truncated.
func attributes(data []byte, header int) (map[uint16][]byte, bool) {
	if len(data) < header {
		return nil, false
	}
	attrs := map[uint16][]byte{}
	for data = data[header:]; len(data) >= unix.SizeofRtAttr; {
		size := int(binary.NativeEndian.Uint16(data))
		typ := binary.NativeEndian.Uint16(data[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		if size < unix.SizeofRtAttr || size > len(data) {
			return nil, false
		}
		attrs[typ] = data[unix.SizeofRtAttr:size]
		aligned := (size + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1)
		data = data[min(aligned, len(data)):]
	}
	return attrs, true
}

// tableOf returns the table of a route or rule message: the attribute (FRA_TABLE has the number of
// RTA_TABLE), or for tables below 256 the byte in the header.
func tableOf(data []byte, attrs map[uint16][]byte) uint32 {
	if t := attrs[unix.RTA_TABLE]; len(t) == 4 {
		return binary.NativeEndian.Uint32(t)
	}
	const table = 4 // offset in struct rtmsg
	return uint32(data[table])
}

package ping

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// family has the differences between IPv4 and IPv6.
type family struct {
	network string
	// header is the size of the IP header in bytes.
	header int
	// ask and reply are the types of the messages.
	ask, reply byte
	// sums: the sender computes the checksum, which the kernel does for ICMPv6 (RFC 3542, section
	// 3.1).
	sums bool
	// shape sets a socket's options.
	shape func(fd int, device string) error
}

var (
	family4 = family{"ip4:icmp", 20, 8, reply4, true, shape4}
	family6 = family{"ip6:ipv6-icmp", 40, 128, reply6, false, shape6}
)

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return family4
	}
	return family6
}

// shape4 makes a socket receive only echo replies that arrive on the device. Requests are not
// fragmented, whatever the kernel believes of the path, and can have an address that the node gets
// later.
func shape4(fd int, device string) error {
	return first(
		unix.BindToDevice(fd, device),
		unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1),
		unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE),
		unix.SetsockoptInt(fd, unix.SOL_RAW, icmpFilter, ^(1<<reply4)),
	)
}

func shape6(fd int, device string) error {
	var block unix.ICMPv6Filter
	for i := range block.Data {
		block.Data[i] = ^uint32(0)
	}
	block.Data[reply6/32] &^= 1 << (reply6 % 32)
	return first(
		unix.BindToDevice(fd, device),
		unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_FREEBIND, 1),
		unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE),
		unix.SetsockoptICMPv6Filter(fd, unix.SOL_ICMPV6, unix.ICMPV6_FILTER, &block),
	)
}

const (
	icmpFilter = 1 // ICMP_FILTER of linux/icmp.h: a set bit keeps a type out
	reply4     = 0
	reply6     = 129
)

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A message has type, code and checksum, an identifier and a sequence number, of which the sender
// can choose both, and then the id.
const headers = 16

// maxIPHeader is the largest IPv4 header, which is read too.
const maxIPHeader = 60

// request returns an ICMP message for a packet of a size, which is bounded by 16 bits.
func (f family) request(id uint64, size int) []byte {
	b := make([]byte, min(max(size-f.header, headers), 1<<16-1-f.header))
	b[0] = f.ask
	binary.BigEndian.PutUint32(b[4:], uint32(id))
	binary.BigEndian.PutUint64(b[8:], id)
	if f.sums {
		binary.BigEndian.PutUint16(b[2:], checksum(b))
	}
	return b
}

// answer returns the id of a message that answers a request. The kernel has checked the checksum.
func (f family) answer(b []byte) (id uint64, is bool) {
	if len(b) < headers || b[0] != f.reply || b[1] != 0 {
		return 0, false
	}
	id = binary.BigEndian.Uint64(b[8:])
	return id, uint32(id) == binary.BigEndian.Uint32(b[4:])
}

// checksum is that of RFC 1071, of a message whose checksum is 0 as yet.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

package l4

import "net/netip"

// Source returns whom an address counts for where connections or requests are bounded per source: an IPv4
// address, or an IPv6 network of 64 bits, which has one owner.
func Source(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits)
	return p
}

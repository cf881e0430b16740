package layout

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// Port converts a port between host and network byte order; the object is little endian only.
func Port(p uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], p)
	return binary.NativeEndian.Uint16(b[:])
}

// AddrPort returns an address and port that is given as maps hold it.
func AddrPort(addr [16]uint8, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(addr).Unmap(), Port(port))
}

// KeyOf returns the key of a frontend.
func KeyOf(a l4.Addr) ServiceKey {
	return ServiceKey{Addr: a.IP.As16(), Port: Port(a.Port), Proto: uint8(a.Proto)}
}

// L4 returns the frontend of a key.
func (k socklbServiceKey) L4() l4.Addr {
	return l4.New(netip.AddrFrom16(k.Addr), Port(k.Port), l4.Proto(k.Proto))
}

// Backends returns the backends that the slots of a set hold, in the same order.
func Backends(slots []Backend) []datapath.Backend {
	backends := make([]datapath.Backend, len(slots))
	for i, s := range slots {
		backends[i] = datapath.Backend{
			IP:     netip.AddrFrom16(s.Addr).Unmap(),
			Port:   Port(s.Port),
			Weight: uint32(s.WeightMinus1) + 1,
		}
	}
	return backends
}

// Word encodes the slots of a set as one u64; Slots is its inverse.
func Word(base, count uint32) uint64 { return uint64(base)<<32 | uint64(count) }

// Slots returns the first slot of a set and the number of its slots.
func Slots(word uint64) (base, count uint32) { return uint32(word >> 32), uint32(word) }

// WordOf returns the word of a set. The map's values are aligned to 8 bytes.
func WordOf(s *Set) *uint64 { return (*uint64)(unsafe.Pointer(s)) }

// ClaimBits is CLAIM_BITS of bpf/lib/config.h.
const ClaimBits = 16

// Owner returns the cookie of the socket that owns the record; 0 if none does. The bits above the
// cookie count the sockets that are trying to claim the record at the moment. A cookie that the
// kernel counted downwards is negative.
func (r socklbRecord) Owner() uint64 { return uint64(int64(r.Cookie<<ClaimBits) >> ClaimBits) }

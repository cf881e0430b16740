package socklb

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// swap16 turns a port between host and network order; the object is little endian only.
func swap16(p uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], p)
	return binary.NativeEndian.Uint16(b[:])
}

func keyOf(a l4.Addr) socklbServiceKey {
	return socklbServiceKey{Addr: a.IP.As16(), Port: swap16(a.Port), Proto: uint8(a.Proto)}
}

func (k socklbServiceKey) addr() l4.Addr {
	return l4.New(netip.AddrFrom16(k.Addr), swap16(k.Port), l4.Proto(k.Proto))
}

// slotsOf makes the slots of a set, with the backends' counters. Backends must be valid: sorted and of
// weight 1…MaxWeight.
func slotsOf(backends []datapath.Backend, counters []uint32) []socklbBackend {
	weights := make([]uint32, len(backends))
	for i, b := range backends {
		weights[i] = b.Weight
	}
	slots := make([]socklbBackend, len(backends))
	for i, s := range aliasTable(weights) {
		b := backends[i]
		slots[i] = socklbBackend{
			Addr:         b.IP.As16(),
			Port:         swap16(b.Port),
			WeightMinus1: uint16(b.Weight - 1),
			Threshold:    s.threshold,
			Alias:        s.alias,
			Counter:      counters[i],
		}
	}
	return slots
}

// backendsOf is the inverse of slotsOf.
func backendsOf(slots []socklbBackend) []datapath.Backend {
	backends := make([]datapath.Backend, len(slots))
	for i, s := range slots {
		backends[i] = datapath.Backend{
			IP:     netip.AddrFrom16(s.Addr).Unmap(),
			Port:   swap16(s.Port),
			Weight: uint32(s.WeightMinus1) + 1,
		}
	}
	return backends
}

// countersOf are the slots' counters.
func countersOf(slots []socklbBackend) []uint32 {
	counters := make([]uint32, len(slots))
	for i, s := range slots {
		counters[i] = s.Counter
	}
	return counters
}

// word is the u64 that flips a frontend to the set e.
func (e extent) word() uint64 { return uint64(e.base)<<32 | uint64(e.count) }

func extentOf(word uint64) extent { return extent{uint32(word >> 32), uint32(word)} }

// normal returns the frontend as the maps hold it: valid, backends sorted. The error names the field
// and says what to do.
func normal(f datapath.Frontend) (datapath.Frontend, error) {
	switch {
	case f.Addr.Proto != l4.TCP && f.Addr.Proto != l4.UDP:
		return f, fmt.Errorf("protocol %s has no socket hook: use TCP or UDP", f.Addr.Proto)
	case !f.Addr.IP.IsValid() || f.Addr.IP.IsUnspecified() || f.Addr.IP.Is4In6() || f.Addr.IP.Zone() != "":
		return f, fmt.Errorf("address %s is not one that can be dialled: give a plain IPv4 or IPv6 address", f.Addr.IP)
	case f.Addr.Port == 0:
		return f, fmt.Errorf("port is 0: give 1 to 65535")
	}
	sorted := true
	for i, b := range f.Backends {
		if err := checkBackend(f.Addr.IP, b); err != nil {
			return f, fmt.Errorf("backends[%d] %s: %w", i, b.AddrPort(), err)
		}
		sorted = sorted && (i == 0 || f.Backends[i-1].Compare(b) < 0)
	}
	if !sorted {
		f.Backends = datapath.SortBackends(f.Backends)
	}
	return f, nil
}

func checkBackend(frontend netip.Addr, b datapath.Backend) error {
	switch {
	case !b.IP.IsValid() || b.IP.IsUnspecified() || b.IP.Is4In6() || b.IP.Zone() != "":
		return fmt.Errorf("address is not one that can be dialled")
	case b.IP.Is4() != frontend.Is4():
		return fmt.Errorf("is of another IP family than the frontend: give the service an address of that family")
	case b.Port == 0:
		return fmt.Errorf("port is 0: give 1 to 65535")
	case b.Weight < 1 || b.Weight > datapath.MaxWeight:
		return fmt.Errorf("weight %d is not in 1…%d", b.Weight, datapath.MaxWeight)
	}
	return nil
}

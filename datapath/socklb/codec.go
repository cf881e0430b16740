package socklb

import (
	"fmt"
	"net/netip"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// slotsOf returns the slots of a set, with the backends' counters. Backends must be valid: sorted
// and of weight 1…MaxWeight.
func slotsOf(backends []datapath.Backend, counters []uint32) []layout.Backend {
	weights := make([]uint32, len(backends))
	for i, b := range backends {
		weights[i] = b.Weight
	}
	slots := make([]layout.Backend, len(backends))
	for i, s := range aliasTable(weights) {
		b := backends[i]
		slots[i] = layout.Backend{
			Addr:         b.IP.As16(),
			Port:         layout.Port(b.Port),
			WeightMinus1: uint16(b.Weight - 1),
			Threshold:    s.threshold,
			Alias:        s.alias,
			Counter:      counters[i],
		}
	}
	return slots
}

// countersOf returns the slots' counters.
func countersOf(slots []layout.Backend) []uint32 {
	counters := make([]uint32, len(slots))
	for i, s := range slots {
		counters[i] = s.Counter
	}
	return counters
}

// word returns the u64 that flips a frontend to the set with the slots e.
func (e extent) word() uint64 { return layout.Word(e.base, e.count) }

func extentOf(word uint64) extent {
	base, count := layout.Slots(word)
	return extent{base, count}
}

// normal returns the frontend as the maps hold it: valid, with sorted backends. The error names the
// field and what to do.
func normal(f datapath.Frontend) (datapath.Frontend, error) {
	switch {
	case f.Addr.Proto != l4.TCP && f.Addr.Proto != l4.UDP:
		return f, fmt.Errorf("protocol %s has no socket hook; use TCP or UDP", f.Addr.Proto)
	case !f.Addr.IP.IsValid() || f.Addr.IP.IsUnspecified() || f.Addr.IP.Is4In6() || f.Addr.IP.Zone() != "":
		return f, fmt.Errorf("address %s cannot be dialled; use a plain IPv4 or IPv6 address", f.Addr.IP)
	case f.Addr.Port == 0:
		return f, fmt.Errorf("port is 0; use 1 to 65535")
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
		return fmt.Errorf("address cannot be dialled")
	case b.IP.Is4() != frontend.Is4():
		return fmt.Errorf("is of another IP family than the frontend; give the service an address of the backend's family")
	case b.Port == 0:
		return fmt.Errorf("port is 0; use 1 to 65535")
	case b.Weight < 1 || b.Weight > datapath.MaxWeight:
		return fmt.Errorf("weight %d is not in 1…%d", b.Weight, datapath.MaxWeight)
	}
	return nil
}

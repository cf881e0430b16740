//go:build linux

package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// Services lists the frontends with their counters, sorted by address.
func (r *Reader) Services() ([]ServiceRow, error) {
	frontends, _, err := r.size()
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	rows := make([]ServiceRow, 0, frontends)
	top := uint32(0)
	err = r.services(func(s service) error {
		top = max(top, s.index+1)
		rows = append(rows, ServiceRow{Addr: s.addr, Index: s.index, Base: s.base, Count: s.count, AffinitySeconds: s.affinity})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	counts, err := counters(r.maps.FrontendCounters, top, func(sum *layout.FrontendCounter, c layout.FrontendCounter) {
		sum.Connects += c.Connects
		sum.Refused += c.Refused
	})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	for i, row := range rows {
		rows[i].Connects, rows[i].Refused = counts[row.Index].Connects, counts[row.Index].Refused
	}
	slices.SortFunc(rows, func(a, b ServiceRow) int { return a.Addr.Compare(b.Addr) })
	return rows, nil
}

// Connects calls each for every pair of frontend and backend that got a connection, in no order.
func (r *Reader) Connects(each func(frontend l4.Addr, backend netip.AddrPort, connects uint64)) error {
	type slot struct { // small, because a scrape holds 100,000 of them
		frontend uint32
		counter  uint32
		addr     [16]byte
		port     uint16
	}
	services, size, err := r.size()
	if err != nil {
		return fmt.Errorf("list connections: %w", err)
	}
	frontends, slots := make([]l4.Addr, 0, services), make([]slot, 0, size)
	top := uint32(0)
	// Read the slots before the counters. Otherwise a counter that goes to another backend
	// meanwhile would credit that backend with all connections of the one before it.
	err = r.services(func(s service) error {
		for _, b := range s.slots {
			slots = append(slots, slot{uint32(len(frontends)), b.Counter, b.Addr, b.Port})
			top = max(top, b.Counter+1)
		}
		frontends = append(frontends, s.addr)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list connections: %w", err)
	}
	counts, err := counters(r.maps.BackendCounters, top, addConnects)
	if err != nil {
		return fmt.Errorf("list connections: %w", err)
	}
	for _, s := range slots {
		if n := counts[s.counter].Connects; n > 0 {
			each(frontends[s.frontend], layout.AddrPort(s.addr, s.port), n)
		}
	}
	return nil
}

func addConnects(sum *layout.BackendCounter, c layout.BackendCounter) { sum.Connects += c.Connects }

// Backends lists every frontend's backends with their counters, sorted by frontend and backend.
func (r *Reader) Backends() ([]BackendRow, error) {
	rows, numbers := []BackendRow{}, []uint32{}
	top := uint32(0)
	err := r.services(func(s service) error {
		for i, b := range layout.Backends(s.slots) {
			rows = append(rows, BackendRow{Frontend: s.addr, Backend: b.AddrPort(), Weight: b.Weight})
			n := s.slots[i].Counter
			numbers = append(numbers, n)
			top = max(top, n+1)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list backends: %w", err)
	}
	counts, err := counters(r.maps.BackendCounters, top, addConnects)
	if err != nil {
		return nil, fmt.Errorf("list backends: %w", err)
	}
	for i, n := range numbers {
		rows[i].Connects = counts[n].Connects
	}
	slices.SortFunc(rows, func(a, b BackendRow) int {
		if c := a.Frontend.Compare(b.Frontend); c != 0 {
			return c
		}
		return a.Backend.Compare(b.Backend)
	})
	return rows, nil
}

// Slots lists the slots that are in use, sorted by number.
func (r *Reader) Slots() ([]SlotRow, error) {
	rows := []SlotRow{}
	err := r.services(func(s service) error {
		for i, slot := range s.slots {
			rows = append(rows, SlotRow{
				Slot: s.base + uint32(i), Frontend: s.addr, Backend: layout.AddrPort(slot.Addr, slot.Port),
				Threshold: slot.Threshold, Alias: slot.Alias,
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list slots: %w", err)
	}
	slices.SortFunc(rows, func(a, b SlotRow) int { return int(a.Slot) - int(b.Slot) })
	return rows, nil
}

// Affinity lists which backend each client keeps, sorted by frontend and client.
func (r *Reader) Affinity() ([]AffinityRow, error) {
	rows := []AffinityRow{}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return nil, fmt.Errorf("list affinity: %w", err)
	}
	now := ts.Nano()
	err := layout.Each(r.maps.Affinities, func(k layout.AffinityKey, v layout.Affinity) error {
		// An entry can have been used after now was read.
		rows = append(rows, AffinityRow{
			Frontend: k.Frontend.L4(), Client: k.Client, Backend: layout.AddrPort(v.Backend, v.Port),
			IdleSeconds: max(0, time.Duration(now-int64(v.Used)).Seconds()),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list affinity: %w", err)
	}
	slices.SortFunc(rows, func(a, b AffinityRow) int {
		if c := a.Frontend.Compare(b.Frontend); c != 0 {
			return c
		}
		return cmp.Compare(a.Client, b.Client)
	})
	return rows, nil
}

// Sockets lists the live sockets that were translated, sorted by cookie. A socket that was closed
// while it was read can still be listed; one whose record moved can be listed twice.
func (r *Reader) Sockets() ([]SocketRow, error) {
	rows := []SocketRow{}
	err := r.records(func(v layout.Record) {
		rows = append(rows, socketRow(v.Owner(), v.Flow, false))
	})
	if err == nil {
		err = r.stored(func(v layout.Row) { rows = append(rows, socketRow(v.Cookie, layout.Flow(v.Flow), true)) })
	}
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w", err)
	}
	slices.SortStableFunc(rows, func(a, b SocketRow) int { return cmp.Compare(a.Cookie, b.Cookie) })
	return rows, nil
}

func socketRow(cookie uint64, f layout.Flow, overflow bool) SocketRow {
	return SocketRow{
		Cookie: cookie, Proto: l4.Proto(f.Proto), Connected: f.Connected != 0, Overflow: overflow,
		Frontend: layout.AddrPort(f.Frontend, f.FrontendPort), Backend: layout.AddrPort(f.Backend, f.BackendPort),
	}
}

// Totals returns what is counted once per node.
func (r *Reader) Totals() (layout.Totals, error) {
	all, err := counters(r.maps.Totals, 1, func(sum *layout.Totals, t layout.Totals) {
		sum.Lost += t.Lost
		sum.Bound += t.Bound
	})
	if err != nil {
		return layout.Totals{}, fmt.Errorf("read totals: %w", err)
	}
	return all[0], nil
}

// counters reads the first n counters of a map and adds up the parts of all CPUs.
func counters[T any](m *ebpf.Map, n uint32, add func(sum *T, part T)) ([]T, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, err
	}
	if n > m.MaxEntries() {
		return nil, fmt.Errorf("counter %d, but there are only %d in %s", n-1, m.MaxEntries(), m)
	}
	sums := make([]T, n)
	keys, parts := make([]uint32, min(n, layout.Batch)), make([]T, int(min(n, layout.Batch))*cpus)
	var cursor ebpf.MapBatchCursor
	for done := uint32(0); done < n; {
		got, err := m.BatchLookup(&cursor, keys, parts, nil)
		if done == 0 && (errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP)) {
			return countersOneByOne(m, sums, add)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil, fmt.Errorf("read %s: %w", m, err)
		}
		for i := range got {
			for _, p := range parts[i*cpus : (i+1)*cpus] {
				if keys[i] < n {
					add(&sums[keys[i]], p)
				}
			}
		}
		if err != nil || got == 0 {
			break
		}
		done += uint32(got)
	}
	return sums, nil
}

// countersOneByOne is for kernels before 5.13, which cannot read maps of this type in batches.
func countersOneByOne[T any](m *ebpf.Map, sums []T, add func(sum *T, part T)) ([]T, error) {
	var parts []T
	for i := range sums {
		if err := m.Lookup(uint32(i), &parts); err != nil {
			return nil, fmt.Errorf("read counter %d of %s: %w", i, m, err)
		}
		for _, p := range parts {
			add(&sums[i], p)
		}
	}
	return sums, nil
}

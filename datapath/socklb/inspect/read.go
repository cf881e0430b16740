//go:build linux

package inspect

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// readTries is the maximum number of attempts of a read that keeps meeting changes.
const readTries = 10

// Read returns what the maps pinned in a directory hold, like Reader.Frontends.
func Read(pins string) ([]datapath.Frontend, error) {
	r, err := OpenReader(pins)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Frontends()
}

// Frontends lists the frontends that are in force, sorted by address, each as it was at one moment.
// Service is empty: the kernel does not hold it.
func (r *Reader) Frontends() ([]datapath.Frontend, error) {
	out := []datapath.Frontend{}
	err := r.services(func(s service) error {
		out = append(out, datapath.Frontend{Addr: s.addr, Backends: layout.Backends(s.slots), AffinitySeconds: s.affinity})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read frontends: %w", err)
	}
	slices.SortFunc(out, func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	return out, nil
}

// Size counts the frontends, and the distinct backends of all of them.
func (r *Reader) Size() (frontends, backends int, err error) {
	type address struct {
		addr [16]byte
		port uint16
	}
	frontends, slots, err := r.size()
	if err != nil {
		return 0, 0, fmt.Errorf("count frontends: %w", err)
	}
	distinct := make(map[address]struct{}, slots)
	err = r.services(func(s service) error {
		for _, b := range s.slots {
			distinct[address{b.Addr, b.Port}] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count frontends: %w", err)
	}
	return frontends, len(distinct), nil
}

// size counts frontends and slots, so that slices can be made in their final size: a scrape reads
// 100,000.
func (r *Reader) size() (frontends, slots int, err error) {
	err = r.services(func(s service) error {
		frontends++
		slots += len(s.slots)
		return nil
	})
	return frontends, slots, err
}

// Reader shows what pinned maps hold. It attaches and changes nothing, and needs no daemon.
type Reader struct {
	pins  string
	maps  layout.Maps
	sets  []layout.Set
	slots []layout.Backend
	views layout.Views
}

// OpenReader opens the maps that are pinned in a directory.
func OpenReader(pins string) (*Reader, error) {
	r := &Reader{pins: pins}
	err := r.open()
	if err == nil {
		err = r.view()
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("read socket load balancer: %w", err)
	}
	return r, nil
}

// OpenOn opens a Reader that sees sets and backends through the caller's views, which must outlive
// it. This saves memory: each mapping of a map counts as memory of the process, in its full size.
func OpenOn(pins string, sets []layout.Set, backends []layout.Backend) (*Reader, error) {
	r := &Reader{pins: pins, sets: sets, slots: backends}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("read socket load balancer: %w", err)
	}
	return r, nil
}

// open opens the maps that are read by system calls.
func (r *Reader) open() (err error) {
	for name, m := range map[string]**ebpf.Map{
		layout.MapServices:         &r.maps.Services,
		layout.MapSockets:          &r.maps.Sockets,
		layout.MapTotals:           &r.maps.Totals,
		layout.MapFrontendCounters: &r.maps.FrontendCounters,
		layout.MapBackendCounters:  &r.maps.BackendCounters,
		layout.MapAffinities:       &r.maps.Affinities,
		layout.MapOptOuts:          &r.maps.Optouts,
	} {
		if *m, err = layout.Open(r.pins, name, &ebpf.LoadPinOptions{ReadOnly: true}); err != nil {
			return err
		}
	}
	return nil
}

// view opens and maps the others.
func (r *Reader) view() (err error) {
	// Not opened read-only, because the kernel does not map such a map into memory.
	if r.maps.Sets, err = layout.Open(r.pins, layout.MapSets, nil); err != nil {
		return err
	}
	if r.maps.Backends, err = layout.Open(r.pins, layout.MapBackends, nil); err != nil {
		return err
	}
	if r.sets, err = layout.View[layout.Set](&r.views, r.maps.Sets, unix.PROT_READ); err != nil {
		return err
	}
	r.slots, err = layout.View[layout.Backend](&r.views, r.maps.Backends, unix.PROT_READ)
	return err
}

// Close releases the maps. Nothing in them was changed, so nothing can be lost.
func (r *Reader) Close() {
	r.sets, r.slots = nil, nil
	_ = r.views.Close()
	_ = r.maps.Close()
}

// service is a frontend as it was at one moment.
type service struct {
	addr            l4.Addr
	index, affinity uint32
	base, count     uint32 // its slots
	slots           []layout.Backend
}

// services calls each for every frontend, in no order. The slots are valid until each returns.
func (r *Reader) services(each func(service) error) error {
	var room []layout.Backend
	return layout.Each(r.maps.Services, func(k layout.ServiceKey, v layout.Service) error {
		s, err := r.service(v.Index, room)
		if err != nil {
			return fmt.Errorf("frontend %s: %w", k.L4(), err)
		}
		room = s.slots
		s.addr = k.L4()
		return each(s)
	})
}

// Count returns how many slots a set has now. It is one load from memory, for callers that wait for
// a change.
func (r *Reader) Count(index uint32) (uint32, error) {
	if index >= uint32(len(r.sets)) {
		return 0, fmt.Errorf("index %d, but there are only %d sets", index, len(r.sets))
	}
	_, count := layout.Slots(atomic.LoadUint64(layout.WordOf(&r.sets[index])))
	return count, nil
}

// service reads a set's slots into room, and reads them again if the set flipped meanwhile: its old
// slots can belong to another set by then, after a grace period.
func (r *Reader) service(index uint32, room []layout.Backend) (s service, err error) {
	if index >= uint32(len(r.sets)) {
		return s, fmt.Errorf("index %d, but there are only %d sets", index, len(r.sets))
	}
	set := &r.sets[index]
	for range readTries {
		before := atomic.LoadUint64(layout.WordOf(set))
		base, count := layout.Slots(before)
		if uint64(base)+uint64(count) > uint64(len(r.slots)) {
			return s, fmt.Errorf("slots %d+%d, but there are only %d", base, count, len(r.slots))
		}
		slots := append(room[:0], r.slots[base:base+count]...)
		if atomic.LoadUint64(layout.WordOf(set)) == before {
			return service{index: index, affinity: atomic.LoadUint32(&set.Affinity), base: base, count: count, slots: slots}, nil
		}
	}
	return s, errors.New("its set changes faster than it can be read")
}

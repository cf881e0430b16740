package socklb

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// bpfKernel implements kernel on the real maps. Sets and slots are written through mmap: a store
// costs no system call, and the store of a set is the single 8-byte store that readers rely on.
type bpfKernel struct {
	maps  *layout.Maps
	sets  []layout.Set
	slots []layout.Backend
	sieve
	gracePeriod
	layout.Views
}

func newBPFKernel(m *layout.Maps) (*bpfKernel, error) {
	g, err := newGracePeriod()
	if err != nil {
		return nil, err
	}
	k := &bpfKernel{maps: m, gracePeriod: *g}
	if k.sets, err = layout.View[layout.Set](&k.Views, m.Sets, unix.PROT_READ|unix.PROT_WRITE); err == nil {
		k.slots, err = layout.View[layout.Backend](&k.Views, m.Backends, unix.PROT_READ|unix.PROT_WRITE)
	}
	if err == nil {
		k.sieve, err = viewSieve(&k.Views, m.AddressSieve)
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *bpfKernel) close() error {
	k.sets, k.slots, k.sieve = nil, nil, sieve{}
	k.gracePeriod.close()
	return k.Views.Close()
}

func (k *bpfKernel) insertService(a l4.Addr, index uint32) error {
	err := k.maps.Services.Update(layout.KeyOf(a), layout.Service{Index: index}, ebpf.UpdateNoExist)
	if errors.Is(err, unix.E2BIG) {
		return errFull
	}
	if err != nil {
		return fmt.Errorf("insert into map services: %w", err)
	}
	return nil
}

func (k *bpfKernel) replaceService(a l4.Addr, index uint32) error {
	if err := k.maps.Services.Put(layout.KeyOf(a), layout.Service{Index: index}); err != nil {
		return fmt.Errorf("write map services: %w", err)
	}
	return nil
}

func (k *bpfKernel) eachService(each func(a l4.Addr, index uint32) error) error {
	return layout.Each(k.maps.Services, func(key layout.ServiceKey, s layout.Service) error { return each(key.L4(), s.Index) })
}

func (k *bpfKernel) setAt(index uint32) (e extent, affinity uint32) {
	s := &k.sets[index]
	return extentOf(atomic.LoadUint64(layout.WordOf(s))), atomic.LoadUint32(&s.Affinity)
}

func (k *bpfKernel) slotsAt(e extent) []layout.Backend { return k.slots[e.base:e.end()] }

func (k *bpfKernel) hasPrefixes(ps []netip.Prefix) bool { return k.sieve.has(ps) }

func (k *bpfKernel) eachAddress(each func(netip.Addr) error) error {
	return layout.Each(k.maps.Addresses, func(a layout.Address, _ uint32) error { return each(netip.AddrFrom16(a.Addr).Unmap()) })
}

func (k *bpfKernel) deleteService(a l4.Addr) error {
	if err := k.maps.Services.Delete(layout.KeyOf(a)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete from map services: %w", err)
	}
	return nil
}

func (k *bpfKernel) storeSet(index uint32, e extent) {
	atomic.StoreUint64(layout.WordOf(&k.sets[index]), e.word())
}

func (k *bpfKernel) storeAffinity(index, seconds uint32) {
	atomic.StoreUint32(&k.sets[index].Affinity, seconds)
}

func (k *bpfKernel) writeSlots(base uint32, slots []layout.Backend) { copy(k.slots[base:], slots) }

func (k *bpfKernel) numberSlot(slot, number uint32) {
	atomic.StoreUint32(&k.slots[slot].Counter, number)
}

func (k *bpfKernel) zeroFrontend(index uint32) error {
	return zero[layout.FrontendCounter](k.maps.FrontendCounters, index)
}

func (k *bpfKernel) zeroBackend(number uint32) error {
	return zero[layout.BackendCounter](k.maps.BackendCounters, number)
}

// zero resets every CPU's part of a counter.
func zero[T any](m *ebpf.Map, i uint32) error {
	cpus, err := ebpf.PossibleCPU()
	if err == nil {
		err = m.Put(i, make([]T, cpus))
	}
	if err != nil {
		return fmt.Errorf("zero counter %d of %s: %w", i, m, err)
	}
	return nil
}

func (k *bpfKernel) grace() error { return k.wait() }

func (k *bpfKernel) keepMarks(all iter.Seq[netip.Addr]) bool { return k.sieve.keep(all) }

func (k *bpfKernel) setPrefixes(ps []netip.Prefix) error { return k.sieve.setPrefixes(ps, k.grace) }

func (k *bpfKernel) insertAddress(a netip.Addr) error {
	err := k.maps.Addresses.Put(layout.Address{Addr: a.As16()}, uint32(0))
	if errors.Is(err, unix.E2BIG) {
		return errFull
	}
	if err != nil {
		return fmt.Errorf("insert into map addresses: %w", err)
	}
	return nil
}

func (k *bpfKernel) deleteAddress(a netip.Addr) error {
	if err := k.maps.Addresses.Delete(layout.Address{Addr: a.As16()}); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete from map addresses: %w", err)
	}
	return nil
}

// own returns the addresses of which every port is strait's.
func (k *bpfKernel) own() (own datapath.Own, err error) {
	err = k.eachAddress(func(a netip.Addr) error {
		own.Addrs = append(own.Addrs, a)
		return nil
	})
	own.Prefixes = k.prefixes()
	return own, err
}

// read decodes the maps and returns the frontends that they hold.
func (k *bpfKernel) read() ([]installed, error) {
	var have []installed
	var key layout.ServiceKey
	var value layout.Service
	it := k.maps.Services.Iterate()
	for it.Next(&key, &value) {
		a := key.L4()
		if value.Index >= uint32(len(k.sets)) {
			return nil, fmt.Errorf("frontend %s has index %d, but there are only %d sets", a, value.Index, len(k.sets))
		}
		set := &k.sets[value.Index]
		e := extentOf(atomic.LoadUint64(layout.WordOf(set)))
		if uint64(e.base)+uint64(e.count) > uint64(len(k.slots)) {
			return nil, fmt.Errorf("frontend %s has slots %d+%d, but there are only %d", a, e.base, e.count, len(k.slots))
		}
		have = append(have, installedOf(a, value.Index, set.Affinity, e, k.slots[e.base:e.end()]))
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("read map services: %w", err)
	}
	return have, nil
}

func installedOf(a l4.Addr, index, affinity uint32, block extent, slots []layout.Backend) installed {
	return installed{
		frontend: datapath.Frontend{Addr: a, Backends: layout.Backends(slots), AffinitySeconds: affinity},
		index:    index, block: block, numbers: countersOf(slots),
	}
}

// sweep zeroes the sets that no frontend uses: a daemon can have died between two steps.
func (k *bpfKernel) sweep(have []installed) {
	used := make(map[uint32]bool, len(have))
	for _, h := range have {
		used[h.index] = true
	}
	for i := range k.sets {
		if k.sets[i] != (layout.Set{}) && !used[uint32(i)] {
			k.storeSet(uint32(i), extent{})
			k.storeAffinity(uint32(i), 0)
		}
	}
}

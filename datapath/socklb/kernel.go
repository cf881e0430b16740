package socklb

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// bpfKernel is the kernel interface on the real maps. Sets and slots are written through mmap: a store
// costs no system call, and that of a set is the one 8-byte store that readers rely on.
type bpfKernel struct {
	services *ebpf.Map
	sets     []uint64
	slots    []socklbBackend
	gracePeriod
	mappings [][]byte
}

func newBPFKernel(m *socklbMaps) (*bpfKernel, error) {
	g, err := newGracePeriod()
	if err != nil {
		return nil, err
	}
	k := &bpfKernel{services: m.Services, gracePeriod: *g}
	if k.sets, err = mapped[uint64](k, m.Sets); err == nil {
		k.slots, err = mapped[socklbBackend](k, m.Backends)
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// mapped shows an array map's values as a slice.
func mapped[T any](k *bpfKernel, m *ebpf.Map) ([]T, error) {
	size := int(unsafe.Sizeof(*new(T)))
	if int(m.ValueSize()) != size {
		return nil, fmt.Errorf("map a view of %s: value is %d bytes, not %d", m, m.ValueSize(), size)
	}
	b, err := unix.Mmap(m.FD(), 0, int(m.MaxEntries())*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a view of %s: %w", m, err)
	}
	k.mappings = append(k.mappings, b)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), m.MaxEntries()), nil
}

func (k *bpfKernel) close() error {
	var errs []error
	for _, b := range k.mappings {
		errs = append(errs, unix.Munmap(b))
	}
	k.mappings, k.sets, k.slots = nil, nil, nil
	k.gracePeriod.close()
	return errors.Join(errs...)
}

func (k *bpfKernel) insertService(a l4.Addr, index uint32) error {
	err := k.services.Update(keyOf(a), socklbService{Index: index}, ebpf.UpdateNoExist)
	if errors.Is(err, unix.E2BIG) {
		return errFull
	}
	if err != nil {
		return fmt.Errorf("insert into map services: %w", err)
	}
	return nil
}

func (k *bpfKernel) deleteService(a l4.Addr) error {
	if err := k.services.Delete(keyOf(a)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete from map services: %w", err)
	}
	return nil
}

func (k *bpfKernel) storeSet(index uint32, e extent) {
	atomic.StoreUint64(&k.sets[index], e.word())
}

func (k *bpfKernel) writeSlots(base uint32, slots []socklbBackend) { copy(k.slots[base:], slots) }

func (k *bpfKernel) grace() error { return k.wait() }

// read decodes the maps.
func (k *bpfKernel) read() ([]held, error) {
	var have []held
	var key socklbServiceKey
	var value socklbService
	it := k.services.Iterate()
	for it.Next(&key, &value) {
		a := key.addr()
		if value.Index >= uint32(len(k.sets)) {
			return nil, fmt.Errorf("frontend %s has index %d of %d", a, value.Index, len(k.sets))
		}
		e := extentOf(atomic.LoadUint64(&k.sets[value.Index]))
		if uint64(e.base)+uint64(e.count) > uint64(len(k.slots)) {
			return nil, fmt.Errorf("frontend %s has slots %d+%d of %d", a, e.base, e.count, len(k.slots))
		}
		backends := backendsOf(k.slots[e.base:e.end()])
		have = append(have, held{frontend: datapath.Frontend{Addr: a, Backends: backends}, index: value.Index, block: e})
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("read map services: %w", err)
	}
	return have, nil
}

// sweep zeroes the sets that no frontend has: a daemon may have died between two steps.
func (k *bpfKernel) sweep(have []held) {
	used := make(map[uint32]bool, len(have))
	for _, h := range have {
		used[h.index] = true
	}
	for i := range k.sets {
		if k.sets[i] != 0 && !used[uint32(i)] {
			k.storeSet(uint32(i), extent{})
		}
	}
}

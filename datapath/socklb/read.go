package socklb

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// readTries bounds how often a read that met a change starts again.
const readTries = 10

// Read returns what the maps pinned in a directory hold, as Reader.Frontends does.
func Read(pins string) ([]datapath.Frontend, error) {
	r, err := OpenReader(pins)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Frontends()
}

// Frontends lists what is in force, sorted by address. Each frontend is seen as it was at one moment. Service
// is empty: the kernel does not hold it.
func (r *Reader) Frontends() ([]datapath.Frontend, error) {
	var out []datapath.Frontend
	err := r.services(func(s service) error {
		out = append(out, datapath.Frontend{Addr: s.addr, Backends: backendsOf(s.slots), AffinitySeconds: s.affinity})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read frontends: %w", err)
	}
	slices.SortFunc(out, func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	return out, nil
}

// Size counts the frontends, and the backends that they have among them, each once.
func (r *Reader) Size() (frontends, backends int, err error) {
	type address struct {
		addr [16]byte
		port uint16
	}
	distinct := map[address]struct{}{}
	err = r.services(func(s service) error {
		frontends++
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

// Reader shows what pinned maps hold. It attaches and changes nothing, and needs no daemon.
type Reader struct {
	pins  string
	maps  socklbMaps
	sets  []socklbSet
	slots []socklbBackend
	views views
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

// readerOf sees through the kernel's views, which must outlive it: all of a map that is mapped counts as memory of the daemon,
// each time that it is.
func readerOf(k *bpfKernel, pins string) (*Reader, error) {
	r := &Reader{pins: pins, sets: k.sets, slots: k.slots}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("read socket load balancer: %w", err)
	}
	return r, nil
}

// open opens the maps that system calls read.
func (r *Reader) open() (err error) {
	for name, m := range map[string]**ebpf.Map{
		socklbMapServices:         &r.maps.Services,
		socklbMapSockets:          &r.maps.Sockets,
		socklbMapSocketsMore:      &r.maps.SocketsMore,
		socklbMapFrontendCounters: &r.maps.FrontendCounters,
		socklbMapBackendCounters:  &r.maps.BackendCounters,
		socklbMapAffinities:       &r.maps.Affinities,
		socklbMapOptouts:          &r.maps.Optouts,
	} {
		if *m, err = openPin(r.pins, name, &ebpf.LoadPinOptions{ReadOnly: true}); err != nil {
			return err
		}
	}
	return nil
}

// view maps the others.
func (r *Reader) view() (err error) {
	// Not for reading only: of such a map the kernel maps no memory.
	if r.maps.Sets, err = openPin(r.pins, socklbMapSets, nil); err != nil {
		return err
	}
	if r.maps.Backends, err = openPin(r.pins, socklbMapBackends, nil); err != nil {
		return err
	}
	if r.sets, err = mapped[socklbSet](&r.views, r.maps.Sets, unix.PROT_READ); err != nil {
		return err
	}
	r.slots, err = mapped[socklbBackend](&r.views, r.maps.Backends, unix.PROT_READ)
	return err
}

// openPin opens a map of this program's layout, and says what to do where there is another.
func openPin(pins, name string, o *ebpf.LoadPinOptions) (*ebpf.Map, error) {
	at := filepath.Join(mapsDir(pins, layout), name)
	m, err := ebpf.LoadPinnedMap(at, o)
	if err == nil {
		return m, nil
	}
	if found, _ := layoutsOf(pins); len(found) > 0 && found[len(found)-1] != layout {
		return nil, fmt.Errorf("pins %s have %s, this program reads %s: use the one that came with the running straitd, or start it",
			pins, layoutDir(found[len(found)-1]), layoutDir(layout))
	}
	return nil, fmt.Errorf("open %s: %w", at, permission(err))
}

// Close lets go of the maps, of which nothing was changed: there is nothing that could be lost.
func (r *Reader) Close() {
	r.sets, r.slots = nil, nil
	_ = r.views.close()
	_ = r.maps.Close()
}

// service is a frontend as it was at one moment.
type service struct {
	addr            l4.Addr
	index, affinity uint32
	block           extent
	slots           []socklbBackend
}

// services calls each for every frontend, in no order. The slots are valid until each returns.
func (r *Reader) services(each func(service) error) error {
	var room []socklbBackend
	return all(r.maps.Services, func(k socklbServiceKey, v socklbService) error {
		s, err := r.service(v.Index, room)
		if err != nil {
			return fmt.Errorf("frontend %s: %w", k.addr(), err)
		}
		room = s.slots
		s.addr = k.addr()
		return each(s)
	})
}

// service reads a set's slots into room, again if the set flipped meanwhile: its old slots may be another's by
// then, though not at once, but after a grace period.
func (r *Reader) service(index uint32, room []socklbBackend) (s service, err error) {
	if index >= uint32(len(r.sets)) {
		return s, fmt.Errorf("index %d of %d", index, len(r.sets))
	}
	set := &r.sets[index]
	for range readTries {
		before := atomic.LoadUint64(word(set))
		e := extentOf(before)
		if uint64(e.base)+uint64(e.count) > uint64(len(r.slots)) {
			return s, fmt.Errorf("slots %d+%d of %d", e.base, e.count, len(r.slots))
		}
		slots := append(room[:0], r.slots[e.base:e.end()]...)
		if atomic.LoadUint64(word(set)) == before {
			return service{index: index, affinity: atomic.LoadUint32(&set.Affinity), block: e, slots: slots}, nil
		}
	}
	return s, errors.New("its set changes faster than it can be read")
}

// batch is how many entries one system call reads.
const batch = 4096

// all calls each for every entry of a map that is not per CPU, while it may change.
func all[K, V any](m *ebpf.Map, each func(K, V) error) error {
	n := min(batch, int(m.MaxEntries()))
	keys, values := make([]K, n), make([]V, n)
	var cursor ebpf.MapBatchCursor
	for {
		got, err := m.BatchLookup(&cursor, keys, values, nil)
		last := errors.Is(err, ebpf.ErrKeyNotExist)
		if err != nil && !last {
			return fmt.Errorf("read %s: %w", m, err)
		}
		for i := range got {
			if err := each(keys[i], values[i]); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

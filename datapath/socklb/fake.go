package socklb

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// Fake is a load balancer in memory. It makes the same decisions as LB, on maps that no program
// reads. The zero value is ready for use, and safe for concurrent use.
type Fake struct {
	// MaxFrontends and MaxBackends are as in Config.
	MaxFrontends, MaxBackends uint32
	// Fault, if set, is called before a frontend's service is inserted or deleted; its result is
	// taken for the kernel's error.
	Fault func(l4.Addr) error

	mu       sync.Mutex
	table    *table
	services map[l4.Addr]uint32
	sets     map[uint32]extent
	affinity map[uint32]uint32
	slots    map[uint32]layout.Backend
	marked   map[netip.Addr]bool
	own      datapath.Own
	graces   int
}

// Reconcile works like LB.Reconcile.
func (f *Fake) Reconcile(want []datapath.Frontend, prune bool) ([]problem.Problem, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.table == nil {
		if err := f.init(); err != nil {
			return nil, err
		}
	}
	return f.table.reconcile(want, prune)
}

// SetOwn works like LB.SetOwn.
func (f *Fake) SetOwn(want datapath.Own, prune bool) ([]problem.Problem, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.table == nil {
		if err := f.init(); err != nil {
			return nil, err
		}
	}
	return f.table.setOwn(want, prune)
}

// Own returns the addresses of which every port is strait's.
func (f *Fake) Own() datapath.Own {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := datapath.Own{Prefixes: f.own.Prefixes, Addrs: slices.Clone(f.own.Addrs)}
	slices.SortFunc(own.Addrs, netip.Addr.Compare)
	return own
}

// Frontends works like LB.Frontends.
func (f *Fake) Frontends() ([]datapath.Frontend, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return listed(f.read()), nil
}

func (f *Fake) init() (err error) {
	c := Config{MaxFrontends: f.MaxFrontends, MaxBackends: f.MaxBackends}.withDefaults()
	f.services = map[l4.Addr]uint32{}
	f.sets = map[uint32]extent{}
	f.affinity = map[uint32]uint32{}
	f.slots = map[uint32]layout.Backend{}
	f.marked = map[netip.Addr]bool{}
	f.table, err = newTable(fakeKernel{f}, nil, c, true)
	return err
}

// read decodes the maps, as LB does.
func (f *Fake) read() (have []installed) {
	for _, a := range slices.SortedFunc(maps.Keys(f.services), l4.Addr.Compare) {
		e := f.sets[f.services[a]]
		slots := make([]layout.Backend, e.count)
		for i := range slots {
			slots[i] = f.slots[e.base+uint32(i)]
		}
		have = append(have, installedOf(a, f.services[a], f.affinity[f.services[a]], e, slots))
	}
	return have
}

// fakeKernel implements kernel, to keep the writing side out of Fake's methods.
type fakeKernel struct{ f *Fake }

func (k fakeKernel) fault(a l4.Addr) error {
	if k.f.Fault == nil {
		return nil
	}
	return k.f.Fault(a)
}

func (k fakeKernel) insertService(a l4.Addr, index uint32) error {
	if err := k.fault(a); err != nil {
		return err
	}
	k.f.services[a] = index
	return nil
}

func (k fakeKernel) deleteService(a l4.Addr) error {
	if err := k.fault(a); err != nil {
		return err
	}
	delete(k.f.services, a)
	return nil
}

func (k fakeKernel) storeSet(index uint32, e extent) { k.f.sets[index] = e }

func (k fakeKernel) storeAffinity(index, seconds uint32) { k.f.affinity[index] = seconds }

func (k fakeKernel) writeSlots(base uint32, slots []layout.Backend) {
	for i, s := range slots {
		k.f.slots[base+uint32(i)] = s
	}
}

func (k fakeKernel) numberSlot(slot, number uint32) {
	s := k.f.slots[slot]
	s.Counter = number
	k.f.slots[slot] = s
}

// Fake has no counters, so there is nothing to zero.
func (k fakeKernel) zeroFrontend(uint32) error { return nil }
func (k fakeKernel) zeroBackend(uint32) error  { return nil }

func (k fakeKernel) mark(a netip.Addr) { k.f.marked[a] = true }

func (k fakeKernel) keepMarks(all iter.Seq[netip.Addr]) bool {
	was, missing := k.f.marked, false
	k.f.marked = map[netip.Addr]bool{}
	for a := range all {
		k.f.marked[a], missing = true, missing || !was[a]
	}
	return missing
}

func (k fakeKernel) insertAddress(a netip.Addr) error {
	k.f.own.Addrs = append(k.f.own.Addrs, a)
	return nil
}

func (k fakeKernel) deleteAddress(a netip.Addr) error {
	k.f.own.Addrs = slices.DeleteFunc(k.f.own.Addrs, func(b netip.Addr) bool { return a == b })
	return nil
}

func (k fakeKernel) setPrefixes(ps []netip.Prefix) error {
	k.f.own.Prefixes = ps
	return nil
}

func (k fakeKernel) eachService(each func(a l4.Addr, index uint32) error) error {
	for a, index := range k.f.services {
		if err := each(a, index); err != nil {
			return err
		}
	}
	return nil
}

func (k fakeKernel) setAt(index uint32) (extent, uint32) { return k.f.sets[index], k.f.affinity[index] }

func (k fakeKernel) slotsAt(e extent) (out []layout.Backend) {
	for i := range e.count {
		out = append(out, k.f.slots[e.base+i])
	}
	return out
}

func (k fakeKernel) eachAddress(each func(netip.Addr) error) error {
	for _, a := range k.f.own.Addrs {
		if err := each(a); err != nil {
			return err
		}
	}
	return nil
}

func (k fakeKernel) hasPrefixes(ps []netip.Prefix) bool { return slices.Equal(ps, k.f.own.Prefixes) }

func (k fakeKernel) replaceService(a l4.Addr, index uint32) error {
	k.f.services[a] = index
	return nil
}

func (k fakeKernel) grace() error {
	k.f.graces++
	return nil
}

package socklb

import (
	"errors"
	"fmt"

	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// watcher stands between a table and its kernel, the fake's or the real one. It looks at each step with the
// eyes of a program that was started before it: one that has looked up a service, or read a set, at any time
// since the last grace period. And it lets steps fail.
type watcher struct {
	kernel
	fail   func(string, ...any)
	faults faults
	// Of each this many were taken since faults was set.
	steps, zeroes, graces int

	// What the maps hold, as far as programs can find it.
	services map[l4.Addr]uint32
	sets     map[uint32]extent
	counters map[uint32]uint32
	// reach are the slots that a program could have found since the last grace period, found the indexes.
	reach map[uint32]bool
	found map[uint32]l4.Addr
	// deleted: an element of services is free to be handed to another key.
	deleted bool
}

// faults are the steps that fail; the zero value is none.
type faults struct {
	// Services' inserts and deletes fail for these addresses. With full they fail as in a map that is full.
	Addrs []l4.Addr
	Full  bool
	// Every Zero-th zeroing of a counter, and every Grace-th grace period, fails.
	Zero, Grace int
	// At the Death-th step the process dies: it is not made, or made by half.
	Death int
}

var errInjected = errors.New("injected")

// death is what watcher panics with.
type death struct{}

// watch starts from what the maps hold, when no program runs that has seen anything else.
func watch(k kernel, have []installed, fail func(string, ...any)) *watcher {
	w := &watcher{kernel: k, fail: fail, services: map[l4.Addr]uint32{}, sets: map[uint32]extent{}, counters: map[uint32]uint32{}}
	for _, h := range have {
		w.services[h.frontend.Addr] = h.index
		w.sets[h.index] = h.block
		for i, n := range h.numbers {
			w.counters[h.block.base+uint32(i)] = n
		}
	}
	w.settled()
	return w
}

// inject sets what fails from now on.
func (w *watcher) inject(f faults) {
	w.faults = f
	w.steps, w.zeroes, w.graces = 0, 0, 0
}

// dies counts a step, and reports whether it is the last.
func (w *watcher) dies() bool {
	w.steps++
	return w.steps == w.faults.Death
}

func (w *watcher) step() {
	if w.dies() {
		panic(death{})
	}
}

// refuses is the error of an insert or a delete.
func (w *watcher) refuses(a l4.Addr) error {
	for _, b := range w.faults.Addrs {
		if a == b && w.faults.Full {
			return errFull
		}
		if a == b {
			return fmt.Errorf("%w for %s", errInjected, a)
		}
	}
	return nil
}

// settled is the state after a grace period: programs can find what is there now.
func (w *watcher) settled() {
	w.reach, w.found, w.deleted = map[uint32]bool{}, map[uint32]l4.Addr{}, false
	for a, index := range w.services {
		w.publish(index, a)
	}
}

func (w *watcher) publish(index uint32, a l4.Addr) {
	w.found[index] = a
	e := w.sets[index]
	for n := e.base; n < e.end(); n++ {
		w.reach[n] = true
	}
}

func (w *watcher) insertService(a l4.Addr, index uint32) error {
	w.step()
	if w.deleted {
		w.fail("insert %s without a grace period after a delete", a)
	}
	if was, ok := w.found[index]; ok && was != a {
		w.fail("index %d of %s is given to %s while programs may hold it", index, was, a)
	}
	if err := w.refuses(a); err != nil {
		return err
	}
	if err := w.kernel.insertService(a, index); err != nil {
		return err
	}
	w.services[a] = index
	w.publish(index, a)
	return nil
}

func (w *watcher) deleteService(a l4.Addr) error {
	w.step()
	if err := w.refuses(a); err != nil {
		return err
	}
	if err := w.kernel.deleteService(a); err != nil {
		return err
	}
	delete(w.services, a)
	w.deleted = true
	return nil
}

func (w *watcher) storeSet(index uint32, e extent) {
	w.step()
	a, found := w.found[index]
	if _, live := w.services[a]; found && !live {
		w.fail("set %d of the removed %s is changed while programs may read it", index, a)
	}
	w.kernel.storeSet(index, e)
	w.sets[index] = e
	if found {
		w.publish(index, a)
	}
}

func (w *watcher) storeAffinity(index, seconds uint32) {
	w.step()
	w.kernel.storeAffinity(index, seconds)
}

func (w *watcher) writeSlots(base uint32, slots []layout.Backend) {
	for i, s := range slots {
		if w.reach[base+uint32(i)] {
			w.fail("slot %d is written while programs may read it", base+uint32(i))
		}
		w.counters[base+uint32(i)] = s.Counter
	}
	if w.dies() {
		w.kernel.writeSlots(base, slots[:len(slots)/2])
		panic(death{})
	}
	w.kernel.writeSlots(base, slots)
}

// A counter is zeroed only while no running program can add to it.
func (w *watcher) zeroFrontend(index uint32) error {
	if a, ok := w.found[index]; ok {
		w.fail("the counter of %s is zeroed while programs may add to it", a)
	}
	return w.zero(func() error { return w.kernel.zeroFrontend(index) })
}

func (w *watcher) zeroBackend(number uint32) error {
	for slot := range w.reach {
		if w.counters[slot] == number {
			w.fail("counter %d of slot %d is zeroed while programs may add to it", number, slot)
		}
	}
	return w.zero(func() error { return w.kernel.zeroBackend(number) })
}

func (w *watcher) zero(do func() error) error {
	w.step()
	w.zeroes++
	if n := w.faults.Zero; n > 0 && w.zeroes%n == 0 {
		return fmt.Errorf("%w: zero", errInjected)
	}
	return do()
}

func (w *watcher) grace() error {
	w.step()
	w.graces++
	if n := w.faults.Grace; n > 0 && w.graces%n == 0 {
		return fmt.Errorf("%w: grace", errInjected)
	}
	if err := w.kernel.grace(); err != nil {
		return err
	}
	w.settled()
	return nil
}

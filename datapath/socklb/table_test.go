package socklb

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// suspicious is a kernel that looks at each step with the eyes of a program that was started before it:
// one that has looked up a service, or read a set, at any time since the last grace period.
type suspicious struct {
	fakeKernel
	fail func(string, ...any)
	// reach counts, per slot, the sets since the last grace period that a program could have read.
	reach map[uint32]bool
	// reused are the indexes that programs could have found since then.
	found map[uint32]l4.Addr
	// deleted: an element of services is free to be handed to another key.
	deleted bool
	// Every faultyZero-th time a counter is zeroed it fails; 0 is never.
	zeroes, faultyZero int
}

func (s *suspicious) publish(index uint32, a l4.Addr) {
	s.found[index] = a
	e := s.f.sets[index]
	for n := e.base; n < e.end(); n++ {
		s.reach[n] = true
	}
}

func (s *suspicious) insertService(a l4.Addr, index uint32) error {
	if s.deleted {
		s.fail("insert %s without a grace period after a delete", a)
	}
	if was, ok := s.found[index]; ok && was != a {
		s.fail("index %d of %s is given to %s while programs may hold it", index, was, a)
	}
	if err := s.fakeKernel.insertService(a, index); err != nil {
		return err
	}
	s.publish(index, a)
	return nil
}

func (s *suspicious) deleteService(a l4.Addr) error {
	if err := s.fakeKernel.deleteService(a); err != nil {
		return err
	}
	s.deleted = true
	return nil
}

func (s *suspicious) storeSet(index uint32, e extent) {
	a, found := s.found[index]
	if _, live := s.f.services[a]; found && !live {
		s.fail("set %d of the removed %s is changed while programs may read it", index, a)
	}
	s.fakeKernel.storeSet(index, e)
	if found {
		s.publish(index, a)
	}
}

func (s *suspicious) writeSlots(base uint32, slots []socklbBackend) {
	for i := range slots {
		if s.reach[base+uint32(i)] {
			s.fail("slot %d is written while programs may read it", base+uint32(i))
		}
	}
	s.fakeKernel.writeSlots(base, slots)
}

// A counter is zeroed only while no running program can add to it.
func (s *suspicious) zeroFrontend(index uint32) error {
	if a, ok := s.found[index]; ok {
		s.fail("the counter of %s is zeroed while programs may add to it", a)
	}
	return s.zeroed()
}

func (s *suspicious) zeroBackend(number uint32) error {
	for slot := range s.reach {
		if s.f.slots[slot].Counter == number {
			s.fail("counter %d of slot %d is zeroed while programs may add to it", number, slot)
		}
	}
	return s.zeroed()
}

// zeroed fails now and then.
func (s *suspicious) zeroed() error {
	s.zeroes++
	if s.faultyZero > 0 && s.zeroes%s.faultyZero == 0 {
		return errors.New("injected: zero")
	}
	return nil
}

func (s *suspicious) grace() error {
	s.reach, s.found, s.deleted = map[uint32]bool{}, map[uint32]l4.Addr{}, false
	for a, index := range s.f.services {
		s.publish(index, a)
	}
	return s.fakeKernel.grace()
}

// Any sequence of wanted states, with faults, restarts and maps that fill up: no step is one that a running
// program could see as wrong, every frontend is as wanted or as it was, and errors name exactly the others.
func TestTableProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &Fake{MaxFrontends: 6, MaxBackends: rapid.Uint32Range(4, 40).Draw(t, "slots")}
		if err := f.init(); err != nil {
			t.Fatal(err)
		}
		k := &suspicious{fakeKernel: fakeKernel{f}, fail: t.Fatalf}
		_ = k.grace() // the fake's never fails
		f.table.kernel = k
		t.Repeat(map[string]func(*rapid.T){
			"reconcile": func(t *rapid.T) {
				k.faultyZero = rapid.IntRange(0, 3).Draw(t, "every n-th zeroing fails")
				reconcileAndCheck(t, f)
			},
			"": func(t *rapid.T) { checkCounters(t, f) },
			"restart": func(t *rapid.T) {
				_ = k.grace() // as LB.restore
				k.faultyZero = 0
				table, err := newTable(k, f.read(), Config{MaxFrontends: f.MaxFrontends, MaxBackends: f.MaxBackends}, false)
				if err != nil {
					t.Fatal(err)
				}
				f.table = table
			},
		})
	})
}

func reconcileAndCheck(t *rapid.T, f *Fake) {
	before := map[l4.Addr]datapath.Frontend{}
	for _, h := range f.read() {
		before[h.frontend.Addr] = h.frontend
	}
	byAddr := func(f datapath.Frontend) l4.Addr { return f.Addr }
	want := rapid.SliceOfNDistinct(drawFrontend(12), 0, 8, byAddr).Draw(t, "want")
	prune := rapid.Bool().Draw(t, "prune")
	faulty := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7}), 0, 2).Draw(t, "faulty")
	f.Fault = func(a l4.Addr) error {
		if slices.Contains(faulty, int(a.IP.As16()[15]+byte(a.Port))%8) {
			return errors.New("injected")
		}
		return nil
	}
	err := f.Reconcile(want, prune)
	failed := 0
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		failed = len(joined.Unwrap())
	}
	after := map[l4.Addr]datapath.Frontend{}
	for _, h := range f.read() {
		after[h.frontend.Addr] = h.frontend
	}
	wanted := map[l4.Addr]bool{}
	for _, w := range want {
		wanted[w.Addr] = true
		w, _ = normal(w) // drawn valid
		if got, ok := after[w.Addr]; ok && got.Equal(w) {
			continue
		}
		failed--
		if !same(before, after, w.Addr) {
			t.Fatalf("%s is neither as wanted nor as it was: %v, error %v", w.Addr, after[w.Addr], err)
		}
	}
	for a := range before {
		if wanted[a] {
			continue
		}
		if _, there := after[a]; there && prune {
			failed--
		}
		if !prune && !same(before, after, a) {
			t.Fatalf("%s was changed without being wanted", a)
		}
	}
	if failed != 0 {
		t.Fatalf("errors and failures differ by %d: %v", failed, err)
	}
}

// checkCounters: each backend has its own counter, which is neither free nor in limbo, and none is lost.
func checkCounters(t *rapid.T, f *Fake) {
	owners := map[uint32]string{0: "none"}
	own := func(n uint32, owner string) {
		if was, ok := owners[n]; ok {
			t.Fatalf("counter %d is both %s and %s", n, was, owner)
		}
		owners[n] = owner
	}
	for _, h := range f.read() {
		for i, b := range h.frontend.Backends {
			own(h.numbers[i], fmt.Sprintf("%s's %s", h.frontend.Addr, b.AddrPort()))
		}
		if !slices.Equal(h.numbers, f.table.held[h.frontend.Addr].numbers) {
			t.Fatalf("%s has counters %v, and believes %v", h.frontend.Addr, h.numbers, f.table.held[h.frontend.Addr].numbers)
		}
	}
	c := f.table.counters
	for _, n := range c.free {
		own(n, "free")
	}
	for _, n := range c.limbo {
		own(n, "in limbo")
	}
	for n := c.next; n < c.size; n++ {
		own(n, "unused")
	}
	if uint32(len(owners)) != c.size {
		t.Fatalf("%d of %d counters are lost: %v", int(c.size)-len(owners), c.size, owners)
	}
}

func same(before, after map[l4.Addr]datapath.Frontend, a l4.Addr) bool {
	x, was := before[a]
	y, is := after[a]
	return was == is && (!was || x.Equal(y))
}

// Flips alone never wait: a grace period takes milliseconds, so it is awaited only for want of room.
func TestGraceIsLazy(t *testing.T) {
	f := &Fake{MaxBackends: 1000}
	for i := range 200 {
		want := []datapath.Frontend{{Addr: addr("10.96.0.1:80/TCP"), Backends: backends(fmt.Sprintf("10.0.0.%d:80", i+1))}}
		if err := f.Reconcile(want, true); err != nil {
			t.Fatal(err)
		}
	}
	if f.graces != 0 {
		t.Errorf("200 flips in 1000 slots waited %d times", f.graces)
	}
}

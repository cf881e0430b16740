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
			"reconcile": func(t *rapid.T) { reconcileAndCheck(t, f) },
			"restart": func(t *rapid.T) {
				table, err := newTable(k, f.read(), f.MaxFrontends, f.MaxBackends)
				if err != nil {
					t.Fatal(err)
				}
				_ = k.grace() // as LB.restore
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

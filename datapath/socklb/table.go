package socklb

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// kernel is what the table needs from the maps. Each call is one step, whose effect a running
// program can see at once.
type kernel interface {
	insertService(a l4.Addr, index uint32) error
	// deleteService succeeds if there is no such service.
	deleteService(a l4.Addr) error
	// storeSet is one atomic store.
	storeSet(index uint32, e extent)
	// storeAffinity is another atomic store. Either value is right with either set.
	storeAffinity(index, seconds uint32)
	writeSlots(base uint32, slots []layout.Backend)
	// numberSlot gives a counter to a slot that is in use.
	numberSlot(slot, number uint32)
	zeroFrontend(index uint32) error
	zeroBackend(number uint32) error
	// grace returns once no program is running that could have read the maps before the call.
	grace() error
	// mark lets programs look for an address at all; keepMarks lets them look for these and for no
	// other, and reports whether one of these was not marked. A mark too many only costs time.
	mark(a netip.Addr)
	keepMarks(all iter.Seq[netip.Addr]) bool
	// insertAddress makes programs refuse the ports of an address that have no frontend.
	insertAddress(a netip.Addr) error
	// deleteAddress succeeds if there is no such address.
	deleteAddress(a netip.Addr) error
	// setPrefixes does for prefixes what insertAddress and deleteAddress do for addresses.
	setPrefixes(ps []netip.Prefix) error

	// The calls below read the maps back; see audit.
	eachService(each func(a l4.Addr, index uint32) error) error
	setAt(index uint32) (e extent, affinity uint32)
	slotsAt(e extent) []layout.Backend
	eachAddress(each func(netip.Addr) error) error
	hasPrefixes(ps []netip.Prefix) bool
	// replaceService makes a service lead to another set.
	replaceService(a l4.Addr, index uint32) error
}

// installed is a frontend that is in the maps.
type installed struct {
	frontend datapath.Frontend
	index    uint32
	block    extent
	// numbers are the counters of frontend.Backends, in the same order.
	numbers []uint32
	// round is the number of the last diff that wanted it.
	round uint64
}

// table decides what to write where, and in which order. It is an in-memory copy of what the maps
// hold, so that the work in the kernel is proportional to the change. Its lists of backends belong
// to the caller. A table is not safe for concurrent use.
//
//	new frontend:  slots → set → mark of the address → service
//	other set:     slots → set (the flip) → old slots retired
//	removal:       service deleted → index, slots and counters retired
//
// What is retired is reused only after a grace period, and the table waits for one only when it
// needs room. The same holds for a deleted service: the kernel can give its element to the next
// insert while a program still reads it, so an insert after a delete waits for a grace period.
type table struct {
	kernel    kernel
	installed map[l4.Addr]*installed
	// listed are the addresses in the map addresses. own are the addresses that were set last; its
	// prefixes are in force, and so is the rest if owned is set.
	listed map[netip.Addr]bool
	own    datapath.Own
	owned  bool
	// applied is the last want, if it is sorted and the maps hold it and nothing else.
	applied []datapath.Frontend
	indexes *numberAllocator
	slots   *pool
	// counters are the counters of backends; a frontend's counter has the frontend's index. There
	// is one number more than there are slots, because 0 means not counted. Every counter that is
	// in use or retired has a slot of its own that is too, so counters cannot run out before slots
	// do.
	counters *numberAllocator
	// deleted: a service was deleted since the last grace period.
	deleted bool
	// round counts the diffs; settled counts the grace periods that were awaited.
	round, settled uint64
	// maxFrontends and maxBackends are the sizes of the maps.
	maxFrontends, maxBackends uint32
}

// newTable starts from what the maps hold; clean: the maps are new. It is an error if two
// frontends share slots or an index.
func newTable(k kernel, have []installed, sizes Config, clean bool) (*table, error) {
	t := &table{kernel: k, installed: make(map[l4.Addr]*installed, len(have)), listed: map[netip.Addr]bool{}, maxFrontends: sizes.MaxFrontends, maxBackends: sizes.MaxBackends}
	var indexes []uint32
	var blocks []extent
	for _, h := range have {
		t.installed[h.frontend.Addr] = &h
		indexes = append(indexes, h.index)
		blocks = append(blocks, h.block)
	}
	var err1, err2 error
	if t.indexes, err1 = newNumberAllocator(0, t.maxFrontends, indexes, clean); err1 != nil {
		err1 = fmt.Errorf("map services: index %w", err1)
	}
	if t.slots, err2 = newPool(t.maxBackends, blocks); err2 != nil {
		err2 = fmt.Errorf("map sets: slots %w", err2)
	}
	return t, errors.Join(err1, err2, t.restoreCounters(have, clean))
}

// errFull is what put returns when there is no room at the moment.
var errFull = errors.New("no room")

// reconcile makes the maps hold want, and nothing else if prune is set. New and changed frontends
// go first. Those that find no room are tried again after the removals, for as long as others free
// more room. A frontend that is refused, or that finds no room, stays as it was and is reported as
// a Problem; the others are still applied.
func (t *table) reconcile(want []datapath.Frontend, prune bool) ([]problem.Problem, error) {
	c, sorted := t.changes(want, prune)
	problems := c.problems
	tried := t.settled
	full, refused, errs := t.putAll(c.put)
	problems = append(problems, refused...)
	for _, f := range c.remove {
		if err := t.remove(f.Addr); err != nil {
			problems = append(problems, problem.Named("frontend", name(f)).Problem(problem.Problem{
				Code:    problem.FrontendRefused,
				Message: fmt.Sprintf("cannot be removed: %v; it still answers, and is removed on the next try", err),
			}))
		}
	}
	// An insert can settle too, so a frontend that was tried before it can find room after it.
	for len(full) > 0 && (t.waiting() || t.settled != tried) {
		if err := t.settle(); err != nil {
			errs = append(errs, err)
			break
		}
		tried = t.settled
		var more []error
		full, refused, more = t.putAll(full)
		problems, errs = append(problems, refused...), append(errs, more...)
	}
	for _, f := range full {
		problems = append(problems, t.noRoom(f))
	}
	if len(c.remove) > 0 {
		t.kernel.keepMarks(t.addresses())
	}
	if len(problems) == 0 && len(errs) == 0 {
		t.remember(want, sorted)
	}
	return problems, errors.Join(errs...)
}

// putAll puts the frontends for which there is room. It returns those for which there is none, and
// a Problem for each one that the kernel refuses.
func (t *table) putAll(fs []datapath.Frontend) (full []datapath.Frontend, problems []problem.Problem, errs []error) {
	for _, f := range fs {
		err := t.put(f)
		var no refusal
		switch {
		case errors.Is(err, errFull):
			full = append(full, f)
		case errors.As(err, &no):
			problems = append(problems, t.problem(f, no.Error(), ""))
		case err != nil:
			errs = append(errs, fmt.Errorf("put frontend %s: %w", name(f), err))
		}
	}
	return full, problems, errs
}

// refusal is the kernel's refusal of one frontend; other errors of put concern the maps as a whole.
type refusal struct{ error }

// waiting reports whether a grace period would free anything.
func (t *table) waiting() bool { return len(t.slots.limbo) > 0 || len(t.indexes.limbo) > 0 }

// noRoom returns a Problem that names the full map.
func (t *table) noRoom(f datapath.Frontend) problem.Problem {
	if n := uint32(len(f.Backends)); t.slots.largest() < n {
		return t.problem(f, fmt.Sprintf("%v: map backends has no %d free slots in a row (%d in all, longest run %d)",
			errFull, n, t.maxBackends, t.slots.largest()), "raise maxBackends")
	}
	return t.problem(f, fmt.Sprintf("%v: map services holds %d frontends and takes no more", errFull, t.maxFrontends),
		"raise maxFrontends")
}

// problem returns a Problem with the reason why a frontend is not as wanted, and what is in force for it.
func (t *table) problem(f datapath.Frontend, cause, try string) problem.Problem {
	p := problem.Named("frontend", name(f)).Problem(problem.Problem{Code: problem.FrontendRefused, Message: "cannot be added: " + cause + "; it does not answer", Try: try})
	if h := t.installed[f.Addr]; h != nil {
		p.Message = fmt.Sprintf("cannot be updated: %s; its %d old backends stay in force", cause, len(h.frontend.Backends))
	}
	return p
}

func name(f datapath.Frontend) string {
	if f.Service == "" {
		return f.Addr.String()
	}
	return fmt.Sprintf("%s (%s)", f.Addr, f.Service)
}

type change struct {
	put, remove []datapath.Frontend
	problems    []problem.Problem
}

// diff compares want with what is installed. If two wanted frontends have the same address, the last one
// counts. An invalid frontend is reported as a Problem, and is neither changed nor removed. For an
// unchanged frontend, diff does a lookup and a comparison and allocates nothing.
func (t *table) diff(want []datapath.Frontend, prune bool) change {
	var c change
	t.round++
	seen := 0
	fresh := map[l4.Addr]bool{}
	for _, f := range slices.Backward(want) {
		h := t.installed[f.Addr]
		if h == nil && fresh[f.Addr] || h != nil && h.round == t.round {
			continue
		}
		if h == nil {
			fresh[f.Addr] = true
		} else {
			seen++
			h.round = t.round
			if h.frontend.Equal(f) {
				h.frontend = f // share the caller's list, so that there is only one copy
				continue
			}
		}
		f, err := normal(f)
		switch {
		case err != nil:
			c.problems = append(c.problems, t.problem(f, err.Error(), ""))
		case h == nil || !h.frontend.Equal(f):
			c.put = append(c.put, f)
		}
	}
	slices.Reverse(c.put)
	slices.Reverse(c.problems)
	if prune && seen < len(t.installed) {
		for _, h := range t.installed {
			if h.round != t.round {
				c.remove = append(c.remove, h.frontend)
			}
		}
		slices.SortFunc(c.remove, func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	}
	return c
}

// put adds a frontend or flips it to its new set.
func (t *table) put(f datapath.Frontend) error {
	h := t.installed[f.Addr]
	if h != nil && slices.Equal(h.frontend.Backends, f.Backends) {
		t.kernel.storeAffinity(h.index, f.AffinitySeconds)
		h.frontend = f
		return nil
	}
	block, ok := t.slots.take(uint32(len(f.Backends)))
	if !ok {
		return errFull
	}
	n, err := t.number(h, f.Backends)
	if err == nil {
		t.kernel.writeSlots(block.base, slotsOf(f.Backends, n.all))
		if h == nil {
			h, err = t.add(f, block)
		} else {
			t.flip(h, f, block)
		}
	}
	if err != nil { // no program could reach the slots or counters yet
		t.slots.insert(block)
		t.counters.put(n.fresh...)
		return err
	}
	h.numbers = n.all
	t.counters.retire(n.gone...)
	t.installed[f.Addr] = h
	return nil
}

func (t *table) flip(h *installed, f datapath.Frontend, block extent) {
	if h.frontend.AffinitySeconds != f.AffinitySeconds {
		t.kernel.storeAffinity(h.index, f.AffinitySeconds)
	}
	t.kernel.storeSet(h.index, block)
	t.slots.retire(h.block)
	h.frontend, h.block = f, block
}

// add makes a set and only then the service that leads to it.
func (t *table) add(f datapath.Frontend, block extent) (*installed, error) {
	if t.deleted {
		if err := t.settle(); err != nil {
			return nil, err
		}
	}
	index, dirty, ok := t.indexes.take()
	if !ok {
		return nil, errFull
	}
	var err error
	if dirty {
		err = t.kernel.zeroFrontend(index)
	}
	if err == nil {
		t.kernel.storeAffinity(index, f.AffinitySeconds)
		t.kernel.storeSet(index, block)
		t.kernel.mark(f.Addr.IP)
		err = t.insert(f.Addr, index)
	}
	if err != nil {
		t.kernel.storeSet(index, extent{})
		t.indexes.put(index) // no service led to it
		return nil, err
	}
	return &installed{frontend: f, index: index, block: block}, nil
}

// insert makes a service lead to its set. Unless the map is full, an error of the kernel concerns
// only this service, so it is returned as a refusal.
func (t *table) insert(a l4.Addr, index uint32) error {
	err := t.kernel.insertService(a, index)
	if err != nil && !errors.Is(err, errFull) {
		return refusal{err}
	}
	return err
}

// remove removes a frontend. A program that has just found it can still be using its slots.
func (t *table) remove(a l4.Addr) error {
	h := t.installed[a]
	if h == nil {
		return nil
	}
	if err := t.kernel.deleteService(a); err != nil {
		return err
	}
	t.deleted = true
	delete(t.installed, a)
	t.slots.retire(h.block)
	t.counters.retire(h.numbers...)
	t.indexes.retire(h.index)
	return nil
}

// settle waits until no running program can still be using what was retired, then frees it.
func (t *table) settle() error {
	if err := t.kernel.grace(); err != nil {
		return err
	}
	for _, i := range t.indexes.limbo {
		t.kernel.storeSet(i, extent{})
	}
	t.settled++
	t.deleted = false
	t.indexes.settle()
	t.slots.settle()
	t.counters.settle()
	return nil
}

// listed returns the frontends that are installed, sorted by address, without the names of their
// services.
func listed(have []installed) []datapath.Frontend {
	out := make([]datapath.Frontend, 0, len(have))
	for _, h := range have {
		h.frontend.Service = ""
		out = append(out, h.frontend)
	}
	slices.SortFunc(out, func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	return out
}

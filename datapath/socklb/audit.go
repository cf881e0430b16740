package socklb

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// damage is where the maps differ from what the table has put there.
type damage struct {
	foreign []l4.Addr    // services that are not ours
	missing []*installed // the service is not there
	moved   []*installed // the service leads to another set
	sets    []*installed // the set leads to other slots, or has another affinity
	slots   []*installed // the slots hold something else
	// strangers are addresses that are listed as own and are not; unlisted are those that are not listed.
	strangers, unlisted []netip.Addr
	prefixes            bool // the ranges of own addresses are others
}

// audit compares the maps with what the table has put there.
func (t *table) audit() (d damage, err error) {
	t.round++ // marks what is found
	err = t.kernel.eachService(func(a l4.Addr, index uint32) error {
		h := t.installed[a]
		if h == nil {
			d.foreign = append(d.foreign, a)
			return nil
		}
		if h.round = t.round; h.index != index {
			d.moved = append(d.moved, h)
		}
		return nil
	})
	if err != nil {
		return d, err
	}
	for _, h := range t.installed {
		if h.round != t.round {
			d.missing = append(d.missing, h)
		}
		if e, affinity := t.kernel.setAt(h.index); e != h.block || affinity != h.frontend.AffinitySeconds {
			d.sets = append(d.sets, h)
		}
		if !slices.Equal(t.kernel.slotsAt(h.block), slotsOf(h.frontend.Backends, h.numbers)) {
			d.slots = append(d.slots, h)
		}
	}
	d.prefixes = !t.kernel.hasPrefixes(t.own.Prefixes)
	return d, t.auditAddresses(&d)
}

func (t *table) auditAddresses(d *damage) error {
	found := make(map[netip.Addr]bool, len(t.listed))
	err := t.kernel.eachAddress(func(a netip.Addr) error {
		if found[a] = true; !t.listed[a] {
			d.strangers = append(d.strangers, a)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for a := range t.listed {
		if !found[a] {
			d.unlisted = append(d.unlisted, a)
		}
	}
	return nil
}

// mend makes the maps hold what the table has put there, in the order in which a program needs it:
// slots, sets, marks, services. What is foreign goes before what is missing comes, to make room. It
// returns what was not as it should be.
func (t *table) mend() (changed []string, err error) {
	d, err := t.audit()
	if err != nil {
		return nil, err
	}
	for _, h := range d.slots {
		t.rewrite(h)
	}
	for _, h := range d.sets {
		t.kernel.storeAffinity(h.index, h.frontend.AffinitySeconds)
		t.kernel.storeSet(h.index, h.block)
	}
	var errs []error
	if d.prefixes {
		errs = append(errs, t.kernel.setPrefixes(t.own.Prefixes))
	}
	marks := t.kernel.keepMarks(t.addresses())
	errs = append(errs, t.mendServices(d), t.mendAddresses(d))
	return d.changed(marks), errors.Join(errs...)
}

// rewrite makes a new set of slots for what a frontend should have. Without room it writes over the
// old ones: a program can meet half a slot then, but what is there is wrong already.
func (t *table) rewrite(h *installed) {
	slots := slotsOf(h.frontend.Backends, h.numbers)
	block, ok := t.slots.take(uint32(len(slots)))
	if !ok {
		t.kernel.writeSlots(h.block.base, slots)
		return
	}
	t.kernel.writeSlots(block.base, slots)
	t.kernel.storeSet(h.index, block)
	t.slots.retire(h.block)
	h.block = block
}

func (t *table) mendServices(d damage) error {
	var errs []error
	for _, a := range d.foreign {
		errs = append(errs, t.kernel.deleteService(a))
		t.deleted = true
	}
	for _, h := range d.moved {
		errs = append(errs, t.kernel.replaceService(h.frontend.Addr, h.index))
	}
	if len(d.missing) > 0 && t.deleted {
		if err := t.settle(); err != nil {
			return err
		}
	}
	for _, h := range d.missing {
		if err := t.kernel.insertService(h.frontend.Addr, h.index); err != nil {
			errs = append(errs, fmt.Errorf("frontend %s: %w", name(h.frontend), err))
		}
	}
	return errors.Join(errs...)
}

func (t *table) mendAddresses(d damage) error {
	var errs []error
	for _, a := range d.strangers {
		errs = append(errs, t.kernel.deleteAddress(a))
	}
	for _, a := range d.unlisted {
		if err := t.kernel.insertAddress(a); err != nil {
			errs = append(errs, fmt.Errorf("address %s: %w", a, err))
		}
	}
	return errors.Join(errs...)
}

// changed names the maps in which something was not as it should be.
func (d damage) changed(marks bool) (out []string) {
	count := func(name string, missing, other, foreign int) {
		if missing+other+foreign > 0 {
			out = append(out, fmt.Sprintf("map %s: %d missing, %d changed, %d foreign", name, missing, other, foreign))
		}
	}
	count(layout.MapServices, len(d.missing), len(d.moved), len(d.foreign))
	count(layout.MapSets, 0, len(d.sets), 0)
	count(layout.MapBackends, 0, len(d.slots), 0)
	count(layout.MapAddresses, len(d.unlisted), 0, len(d.strangers))
	if marks || d.prefixes {
		count(layout.MapAddressSieve, 0, 1, 0)
	}
	return out
}

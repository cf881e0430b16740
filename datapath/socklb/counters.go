package socklb

import "strait.io/strait/datapath"

// numbered has the counters of a frontend's new backends.
type numbered struct {
	// all has the counters in the order of the backends; fresh has those of them that were just
	// taken.
	all, fresh []uint32
	// gone has the counters of backends that the new set no longer has.
	gone []uint32
}

// number gives each backend a counter: the one that it already has in the frontend, or a fresh one
// at 0. h is the frontend as it is installed, or nil.
func (t *table) number(h *installed, backends []datapath.Backend) (n numbered, err error) {
	var old []datapath.Backend
	if h != nil {
		old = h.frontend.Backends
	}
	n.all = make([]uint32, len(backends))
	i := 0
	for j, b := range backends {
		for ; i < len(old) && old[i].Compare(b) < 0; i++ {
			n.gone = append(n.gone, h.numbers[i])
		}
		if i < len(old) && old[i].Compare(b) == 0 {
			n.all[j] = h.numbers[i]
			i++
			continue
		}
		if n.all[j], err = t.freshCounter(); err != nil {
			return n, err
		}
		n.fresh = append(n.fresh, n.all[j])
	}
	if h != nil {
		n.gone = append(n.gone, h.numbers[i:]...)
	}
	return n, nil
}

func (t *table) freshCounter() (uint32, error) {
	number, dirty, ok := t.counters.take()
	if !ok {
		return 0, nil // not counted; see table.counters for why this cannot happen
	}
	if dirty {
		if err := t.kernel.zeroBackend(number); err != nil {
			t.counters.put(number)
			return 0, err
		}
	}
	return number, nil
}

// restoreCounters takes the numbers of counters from the slots. A slot without a number, or with
// one that cannot be right, gets a fresh one: an earlier layout had no counters.
func (t *table) restoreCounters(have []installed, clean bool) (err error) {
	size := t.maxBackends + 1
	taken := make([]bool, size)
	var used []uint32
	for _, h := range have {
		for i, n := range h.numbers {
			if n == 0 || n >= size || taken[n] {
				h.numbers[i] = 0
				continue
			}
			taken[n] = true
			used = append(used, n)
		}
	}
	if t.counters, err = newNumberAllocator(1, size, used, clean); err != nil {
		return err
	}
	for _, h := range have {
		for i := range h.numbers {
			if h.numbers[i] != 0 {
				continue
			}
			if h.numbers[i], err = t.freshCounter(); err != nil {
				return err
			}
			t.kernel.numberSlot(h.block.base+uint32(i), h.numbers[i])
		}
	}
	return nil
}

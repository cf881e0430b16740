package socklb

import (
	"cmp"
	"fmt"
	"slices"
)

// extent is count consecutive numbers from base.
type extent struct{ base, count uint32 }

func (e extent) end() uint32 { return e.base + e.count }

// pool hands out runs of the numbers 0…size-1: slots of the backends map, or indexes of sets. What is
// retired may still be in the hand of a running program, so it is not handed out again before
// settle, which the caller calls after a grace period.
type pool struct {
	size uint32
	// free are sorted and do not touch each other.
	free []extent
	// limbo are retired and not settled.
	limbo []extent
}

// newPool returns a pool in which used are taken. It is an error if these overlap or lie outside.
func newPool(size uint32, used []extent) (*pool, error) {
	used = slices.Clone(used)
	slices.SortFunc(used, func(a, b extent) int { return cmp.Compare(a.base, b.base) })
	p := &pool{size: size}
	next := uint32(0)
	for _, u := range used {
		if u.count == 0 {
			continue
		}
		if u.base < next || u.base > size || u.count > size-u.base {
			return nil, fmt.Errorf("%d…%d is used twice or above %d", u.base, uint64(u.base)+uint64(u.count)-1, size)
		}
		if u.base > next {
			p.free = append(p.free, extent{next, u.base - next})
		}
		next = u.end()
	}
	if next < size {
		p.free = append(p.free, extent{next, size - next})
	}
	return p, nil
}

// take hands out the first run of n free numbers; false if there is none. A run of 0 is always free.
func (p *pool) take(n uint32) (extent, bool) {
	if n == 0 {
		return extent{}, true
	}
	for i, f := range p.free {
		switch {
		case f.count == n:
			p.free = slices.Delete(p.free, i, i+1)
		case f.count > n:
			p.free[i] = extent{f.base + n, f.count - n}
		default:
			continue
		}
		return extent{f.base, n}, true
	}
	return extent{}, false
}

// retire takes back what was handed out. It stays in limbo until settle.
func (p *pool) retire(e extent) {
	if e.count > 0 {
		p.limbo = append(p.limbo, e)
	}
}

// settle frees what was retired: all at once, since it can be as much as there are numbers.
func (p *pool) settle() {
	all := append(p.free, p.limbo...)
	p.free, p.limbo = nil, nil
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.base, b.base) })
	for _, e := range all {
		if last := len(p.free) - 1; last >= 0 && p.free[last].end() == e.base {
			p.free[last].count += e.count
			continue
		}
		p.free = append(p.free, e)
	}
}

// insert adds a run to the free ones at once and joins it with its neighbours.
func (p *pool) insert(e extent) {
	if e.count == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(p.free, e, func(a, b extent) int { return cmp.Compare(a.base, b.base) })
	if i < len(p.free) && e.end() == p.free[i].base {
		e.count += p.free[i].count
		p.free = slices.Delete(p.free, i, i+1)
	}
	if i > 0 && p.free[i-1].end() == e.base {
		p.free[i-1].count += e.count
		return
	}
	p.free = slices.Insert(p.free, i, e)
}

// largest is the length of the longest free run.
func (p *pool) largest() uint32 {
	n := uint32(0)
	for _, f := range p.free {
		n = max(n, f.count)
	}
	return n
}

// used is how many numbers are not free.
func (p *pool) used() uint64 {
	n := uint64(p.size)
	for _, f := range p.free {
		n -= uint64(f.count)
	}
	return n
}

package socklb

import (
	"cmp"
	"fmt"
	"slices"
)

// extent is a run of count consecutive numbers from base.
type extent struct{ base, count uint32 }

func (e extent) end() uint32 { return e.base + e.count }

// pool hands out runs of the numbers 0…size-1: slots of the backends map. A running program can
// still be using what was retired, so it is not handed out again before settle, which the caller
// calls after a grace period.
type pool struct {
	size uint32
	// free has the free runs, sorted and without neighbours that touch.
	free []extent
	// limbo has the runs that are retired but not settled.
	limbo []extent
}

// newPool returns a pool in which the used runs are taken. It is an error if these overlap or lie
// outside 0…size-1.
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
			return nil, fmt.Errorf("%d…%d are used twice or not below %d", u.base, uint64(u.base)+uint64(u.count)-1, size)
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

// take hands out n numbers from the first free run that is long enough, and returns false if there
// is none. A run of 0 is always free.
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

// retire takes back a run that was handed out. It stays in limbo until settle.
func (p *pool) retire(e extent) {
	if e.count > 0 {
		p.limbo = append(p.limbo, e)
	}
}

// settle frees everything that was retired. It does so in one pass, because there can be as many
// runs as numbers.
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

// insert frees a run at once and merges it with its neighbours.
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

// largest returns the length of the longest free run.
func (p *pool) largest() uint32 {
	n := uint32(0)
	for _, f := range p.free {
		n = max(n, f.count)
	}
	return n
}

// used returns how many numbers are not free.
func (p *pool) used() uint64 {
	n := uint64(p.size)
	for _, f := range p.free {
		n -= uint64(f.count)
	}
	return n
}

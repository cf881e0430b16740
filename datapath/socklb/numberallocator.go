package socklb

import "fmt"

// numberAllocator hands out the numbers first…size-1 one by one: indexes of sets, and of counters.
// A running program can still be using what was retired, so it is not handed out again before
// settle, which the caller calls after a grace period.
type numberAllocator struct {
	first, size uint32
	// next and all numbers above it were never handed out. If clean, nothing was ever counted
	// there.
	next  uint32
	clean bool
	// free has numbers that were handed out before; limbo has those that are retired but not
	// settled.
	free, limbo []uint32
}

// newNumberAllocator returns an allocator in which used are taken; clean: the maps are new. It is an
// error if a number is used twice or lies outside first…size-1.
func newNumberAllocator(first, size uint32, used []uint32, clean bool) (*numberAllocator, error) {
	n := &numberAllocator{first: first, size: size, next: first, clean: clean}
	for _, u := range used {
		if u < first || u >= size {
			return nil, fmt.Errorf("%d is not in %d…%d", u, first, size-1)
		}
		n.next = max(n.next, u+1)
	}
	taken := make([]bool, n.next)
	for _, u := range used {
		if taken[u] {
			return nil, fmt.Errorf("%d is used twice", u)
		}
		taken[u] = true
	}
	for u := n.next; u > first; u-- {
		if !taken[u-1] {
			n.free = append(n.free, u-1)
		}
	}
	return n, nil
}

// take hands out a number; ok is false if there is none. If dirty, its counter can be other than 0.
func (n *numberAllocator) take() (number uint32, dirty, ok bool) {
	if last := len(n.free) - 1; last >= 0 {
		number, n.free = n.free[last], n.free[:last]
		return number, true, true
	}
	if n.next >= n.size {
		return 0, false, false
	}
	n.next++
	return n.next - 1, !n.clean, true
}

// put takes back numbers that no program has seen; they are free at once.
func (n *numberAllocator) put(back ...uint32) { n.free = append(n.free, back...) }

// retire takes back numbers that were handed out. They stay in limbo until settle.
func (n *numberAllocator) retire(gone ...uint32) { n.limbo = append(n.limbo, gone...) }

// settle frees what was retired.
func (n *numberAllocator) settle() {
	n.free = append(n.free, n.limbo...)
	n.limbo = nil
}

// used returns how many numbers are not free.
func (n *numberAllocator) used() uint64 { return uint64(n.next-n.first) - uint64(len(n.free)) }

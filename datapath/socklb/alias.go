package socklb

import (
	"math"
	"math/bits"
)

// share is one entry of an alias table. Of the traffic that is drawn to it, it keeps
// (threshold+1)/2^32, and the rest goes to alias.
type share struct{ threshold, alias uint32 }

// aliasTable makes a weighted choice O(1) (Vose's method, in integers): an entry is drawn
// uniformly, then one comparison decides between it and its alias. Weights are
// 1…datapath.MaxWeight; there are at most 2^24.
func aliasTable(weights []uint32) []share {
	n := uint64(len(weights))
	total := uint64(0)
	for _, w := range weights {
		total += uint64(w)
	}
	table := make([]share, n)
	rest := make([]uint64, n) // weight × n: an entry is full at total
	var small, large []uint32
	for i, w := range weights {
		table[i] = share{math.MaxUint32, uint32(i)}
		rest[i] = uint64(w) * n
		switch {
		case rest[i] < total:
			small = append(small, uint32(i))
		case rest[i] > total:
			large = append(large, uint32(i))
		}
	}
	// The surplus of the large entries fills the small ones. Sums are exact, so both run out
	// together.
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		table[s] = share{fraction(rest[s], total), l}
		rest[l] -= total - rest[s]
		if rest[l] <= total {
			large = large[:len(large)-1]
			if rest[l] < total {
				small = append(small, l)
			}
		}
	}
	return table
}

// fraction returns part/whole in units of 2^-32, less one so that the comparison "fraction >
// threshold" is exact. part is less than whole and not 0.
func fraction(part, whole uint64) uint32 {
	hi, lo := bits.Mul64(part, 1<<32)
	q, _ := bits.Div64(hi, lo, whole)
	return uint32(max(q, 1) - 1)
}

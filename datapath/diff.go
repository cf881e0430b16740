package datapath

import (
	"slices"

	"strait.io/strait/internal/l4"
)

// Change leads from what is installed to what is wanted. Put is applied before Remove: make
// before break.
type Change[T any] struct {
	// Put has the new and the different items, in the order of want.
	Put []T
	// Remove has the items that are installed but not wanted, in the order of have.
	Remove []T
}

// Diff compares, by key, what is installed with what is wanted. The keys of want should be unique: each
// wanted item is compared with the installed one, and put if it differs.
func Diff[T any, K comparable](have, want []T, key func(T) K, equal func(a, b T) bool) Change[T] {
	installed := make(map[K]T, len(have))
	for _, h := range have {
		installed[key(h)] = h
	}
	var c Change[T]
	wanted := make(map[K]bool, len(want))
	for _, w := range want {
		k := key(w)
		wanted[k] = true
		if h, ok := installed[k]; !ok || !equal(h, w) {
			c.Put = append(c.Put, w)
		}
	}
	for _, h := range have {
		if !wanted[key(h)] {
			c.Remove = append(c.Remove, h)
		}
	}
	return c
}

// DiffFrontends compares frontends by address.
func DiffFrontends(have, want []Frontend) Change[Frontend] {
	return Diff(have, want, func(f Frontend) l4.Addr { return f.Addr }, Frontend.Equal)
}

// SortBackends returns a sorted copy of bs in which duplicate addresses are merged by adding their
// weights. The copy has little spare capacity, because it is kept as long as the frontend.
func SortBackends(bs []Backend) []Backend {
	sorted := slices.Clone(bs)
	slices.SortFunc(sorted, Backend.Compare)
	out := sorted[:0]
	for _, b := range sorted {
		b.Weight = min(b.Weight, MaxWeight)
		if last := len(out) - 1; last >= 0 && out[last].Compare(b) == 0 {
			out[last].Weight = min(out[last].Weight+b.Weight, MaxWeight)
			continue
		}
		out = append(out, b)
	}
	return out
}

// SameList reports whether two lists of immutable values are one list in memory. A plan reuses a list of the
// plan before if nothing in it changed.
func SameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

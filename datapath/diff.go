package datapath

import (
	"maps"
	"slices"

	"strait.io/strait/internal/l4"
)

// Change is how to get from what is held to what is wanted. Put is applied before Remove: make before
// break.
type Change[T any] struct {
	// Put are new or different, in the order of want.
	Put []T
	// Remove are held and no longer wanted, in the order of have.
	Remove []T
}

// Empty reports that nothing is to be done.
func (c Change[T]) Empty() bool { return len(c.Put) == 0 && len(c.Remove) == 0 }

// Diff compares by key what is held with what is wanted. Of two wanted items with one key the last wins.
func Diff[T any, K comparable](have, want []T, key func(T) K, equal func(a, b T) bool) Change[T] {
	held := make(map[K]T, len(have))
	for _, h := range have {
		held[key(h)] = h
	}
	var c Change[T]
	wanted := make(map[K]bool, len(want))
	for _, w := range want {
		k := key(w)
		wanted[k] = true
		if h, ok := held[k]; !ok || !equal(h, w) {
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

// SortBackends orders backends and merges repeats of an address by adding their weights.
func SortBackends(bs []Backend) []Backend {
	sum := map[Backend]uint32{}
	for _, b := range bs {
		w := b.Weight
		b.Weight = 0
		sum[b] += w
	}
	out := slices.SortedFunc(maps.Keys(sum), Backend.Compare)
	for i := range out {
		out[i].Weight = min(sum[out[i]], MaxWeight)
	}
	return out
}

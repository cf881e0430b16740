package mcs

import (
	"slices"

	"strait.io/strait/clustermesh"
)

// find looks a name up in a list that is sorted by it.
func find[T any](list []T, s clustermesh.ServiceName, name func(T) clustermesh.ServiceName) (found T, ok bool) {
	n, ok := slices.BinarySearchFunc(list, s, func(x T, s clustermesh.ServiceName) int { return name(x).Compare(s) })
	if ok {
		found = list[n]
	}
	return found, ok
}

// differing returns the names that are in only one of two lists that are sorted by them, and those under which the two are not
// the same.
func differing[T any](a, b []T, name func(T) clustermesh.ServiceName, same func(T, T) bool) (out []clustermesh.ServiceName) {
	for _, x := range a {
		if y, ok := find(b, name(x), name); !ok || !same(x, y) {
			out = append(out, name(x))
		}
	}
	for _, y := range b {
		if _, ok := find(a, name(y), name); !ok {
			out = append(out, name(y))
		}
	}
	return out
}

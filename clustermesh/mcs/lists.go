package mcs

import (
	"slices"

	"strait.io/strait/clustermesh"
)

// find looks up a name in a list that is sorted by name.
func find[T any](list []T, s clustermesh.ServiceName, name func(T) clustermesh.ServiceName) (found T, ok bool) {
	n, ok := slices.BinarySearchFunc(list, s, func(x T, s clustermesh.ServiceName) int { return name(x).Compare(s) })
	if ok {
		found = list[n]
	}
	return found, ok
}

// differing compares two lists that are sorted by name. It returns, sorted, the names that are in
// only one of them, and those whose elements are not the same.
func differing[T any](a, b []T, name func(T) clustermesh.ServiceName, same func(T, T) bool) (out []clustermesh.ServiceName) {
	for len(a) > 0 || len(b) > 0 {
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = name(a[0]).Compare(name(b[0]))
		}
		switch {
		case order < 0:
			out, a = append(out, name(a[0])), a[1:]
		case order > 0:
			out, b = append(out, name(b[0])), b[1:]
		default:
			if !same(a[0], b[0]) {
				out = append(out, name(a[0]))
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

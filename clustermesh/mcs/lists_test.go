package mcs

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

// What differs between two lists is what differs between maps of them.
func TestDiffering(t *testing.T) {
	type item struct {
		name  clustermesh.ServiceName
		value int
	}
	rapid.Check(t, func(t *rapid.T) {
		list := func(label string) (out []item, all map[clustermesh.ServiceName]int) {
			all = map[clustermesh.ServiceName]int{}
			for k, v := range rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), rapid.IntRange(0, 1)).Draw(t, label) {
				all[clustermesh.ServiceName{Namespace: "n", Name: k}] = v
			}
			for _, n := range slices.SortedFunc(maps.Keys(all), clustermesh.ServiceName.Compare) {
				out = append(out, item{n, all[n]})
			}
			return out, all
		}
		a, inA := list("a")
		b, inB := list("b")
		var want []clustermesh.ServiceName
		either := maps.Clone(inA)
		maps.Copy(either, inB)
		for _, n := range slices.SortedFunc(maps.Keys(either), clustermesh.ServiceName.Compare) {
			x, isA := inA[n]
			y, isB := inB[n]
			if isA != isB || x != y {
				want = append(want, n)
			}
		}
		got := differing(a, b, func(i item) clustermesh.ServiceName { return i.name }, func(i, j item) bool { return i == j })
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

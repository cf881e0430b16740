package socklb

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
)

// The traffic that the table gives to each entry is its weight's share.
func TestAliasTableProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint32Range(1, datapath.MaxWeight), 1, 300).Draw(t, "weights")
		table := aliasTable(weights)
		total := 0.0
		for _, w := range weights {
			total += float64(w)
		}
		got := make([]float64, len(weights))
		for i, s := range table {
			own := (float64(s.threshold) + 1) / (1 << 32)
			got[i] += own
			got[s.alias] += 1 - own
		}
		for i, w := range weights {
			want := float64(w) / total
			if diff := math.Abs(got[i]/float64(len(weights)) - want); diff > 1e-6 {
				t.Fatalf("entry %d of %v: share %g, want %g", i, weights, got[i]/float64(len(weights)), want)
			}
		}
	})
}

// Equal weights take the program's short way: every threshold is the maximum.
func TestAliasTableEqual(t *testing.T) {
	for i, s := range aliasTable([]uint32{7, 7, 7, 7, 7}) {
		if s != (share{math.MaxUint32, uint32(i)}) {
			t.Errorf("entry %d: %+v", i, s)
		}
	}
}

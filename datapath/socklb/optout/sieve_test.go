package optout

import (
	"testing"

	"strait.io/strait/datapath/socklb/layout"
)

// TestSieveLetsThrough: a sieve has the bit and the level of each of its cgroups, and few others.
func TestSieveLetsThrough(t *testing.T) {
	o := optOuts{}
	for id := uint64(1); id <= 64; id++ {
		o.add(id*4097, uint32(id%32), layout.ByDaemon)
	}
	s := o.sieve()
	lets := func(id uint64) bool { return s.Bits[sieveBit(id)/64]>>(sieveBit(id)%64)&1 == 1 }
	for id, e := range o {
		if !lets(id) || s.Levels>>e.Level&1 == 0 {
			t.Errorf("cgroup %d of level %d is held back", id, e.Level)
		}
	}
	through := 0
	for id := uint64(1 << 20); id < 1<<20+10_000; id++ {
		if lets(id) {
			through++
		}
	}
	if through > 300 { // 64 of 4,096 bits: 156 expected
		t.Errorf("%d of 10,000 others are let through", through)
	}
}

package node

import (
	"fmt"
	"math"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
)

func TestAhead(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	node, cluster := clustermesh.Origin{Cluster: "a", Node: "n"}, clustermesh.Origin{Cluster: "a"}
	for _, by := range []time.Duration{-20 * 365 * 24 * time.Hour, -time.Hour, 0, 10 * time.Minute, 11 * time.Minute, 365 * 24 * time.Hour} {
		want := by
		if by <= 10*time.Minute {
			want = 0
		}
		at := now.Add(by)
		if got := ahead(node, uint64(at.UnixNano()), now); got != want {
			t.Errorf("a daemon that started %s from now: %s ahead, want %s", by, got, want)
		}
		if got := ahead(cluster, uint64(at.UnixMilli()), now); got != want {
			t.Errorf("a leader elected %s from now: %s ahead, want %s", by, got, want)
		}
	}
	for _, epoch := range []uint64{0, 1, 7} {
		if ahead(node, epoch, now) != 0 || ahead(cluster, epoch, now) != 0 {
			t.Errorf("epoch %d is ahead", epoch)
		}
	}
	for _, epoch := range []uint64{1<<63 - 1, 1 << 63, math.MaxUint64} {
		if ahead(node, epoch, now) < 24*time.Hour || ahead(cluster, epoch, now) < 24*time.Hour {
			t.Errorf("epoch %d is %s and %s ahead", epoch, ahead(node, epoch, now), ahead(cluster, epoch, now))
		}
	}
}

// TestBehind: this machine's clock is behind if most nodes speak from the future, not if those of one
// cluster do.
func TestBehind(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	self := origin("west", "n1")
	said := func(ahead ...time.Duration) clustermesh.ByOrigin[clustermesh.Record] {
		out := clustermesh.ByOrigin[clustermesh.Record]{}
		at := func(o clustermesh.Origin, epoch int64) {
			out = out.With(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: uint64(epoch), Version: 1}})
		}
		at(self, now.Add(year).UnixNano()) // its own says nothing
		at(clustermesh.Origin{Cluster: "east"}, now.Add(year).UnixMilli())
		for i, d := range ahead {
			at(origin("east", fmt.Sprint("n", i)), now.Add(d).UnixNano())
		}
		return out
	}
	for _, c := range []struct {
		said []time.Duration
		want time.Duration
	}{
		{nil, 0},
		{[]time.Duration{0, -year}, 0},
		{[]time.Duration{year}, year},
		{[]time.Duration{year, 0}, 0},
		{[]time.Duration{year, 0, 2 * time.Hour}, year},
		{[]time.Duration{time.Minute, 0, 2 * time.Minute}, 0},
	} {
		if got := new(epochs).behind(self, said(c.said...), now); got != c.want {
			t.Errorf("others spoke %v from now: the clock is %s behind, want %s", c.said, got, c.want)
		}
	}
}

package daemon

import (
	"testing"

	"strait.io/strait/datapath/netfilter"
	"strait.io/strait/internal/problem"
)

func TestDrops(t *testing.T) {
	var d drops
	var table netfilter.Drops
	look := func(untracked, refused uint64, times int) {
		for range times {
			table.Untracked += untracked
			table.Refused += refused
			d.note(table)
		}
	}
	reported := func() bool {
		ps := d.problems()
		return len(ps) == 1 && ps[0].Code == problem.UntrackedDropped
	}
	table = netfilter.Drops{Untracked: 500, Refused: 7} // of an earlier daemon
	look(0, 0, 1)
	for range 10 { // now and then
		look(3, 0, dropsBegin-1)
		look(0, 0, 1)
		if reported() {
			t.Fatal("stray packets are reported")
		}
	}
	look(0, 100, 10)
	if reported() {
		t.Error("what is refused is reported as untracked")
	}
	look(1, 0, dropsBegin)
	if !reported() {
		t.Error("drops that go on are not reported")
	}
	table = netfilter.Drops{} // the rules were written again
	look(2, 1, 1)
	look(0, 0, dropsEnd-1)
	if !reported() {
		t.Error("a pause ends it")
	}
	look(0, 0, 1)
	if reported() {
		t.Error("it is reported after its end")
	}
	if got, want := d.counts(), (netfilter.Drops{Untracked: 10*3*(dropsBegin-1) + dropsBegin + 2, Refused: 1001}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

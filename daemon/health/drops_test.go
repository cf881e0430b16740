package health

import (
	"slices"
	"testing"

	"strait.io/strait/internal/problem"
)

func TestDrops(t *testing.T) {
	var d Drops
	var table Counters
	look := func(untracked, refused uint64, times int) {
		for range times {
			table.Untracked += untracked
			table.Refused += refused
			d.Note(table)
		}
	}
	has := func(code problem.Code) bool {
		return slices.ContainsFunc(d.Problems(), func(p problem.Problem) bool { return p.Code == code })
	}
	reported := func() bool { return has(problem.UntrackedDropped) }
	table = Counters{Untracked: 500, Refused: 7} // of an earlier daemon
	look(0, 0, 1)
	for range 10 { // now and then
		look(3, 0, dropsBegin-1)
		look(0, 0, 1)
		if reported() {
			t.Fatal("stray packets are reported")
		}
	}
	look(0, 100, refusedBegin-1)
	if has(problem.TunnelRefused) {
		t.Error("a scan of the node's ports is reported as traffic that goes on")
	}
	look(0, 100, 1)
	if reported() || !has(problem.TunnelRefused) {
		t.Errorf("packets are refused again and again: problems %v", d.Problems())
	}
	look(1, 0, dropsBegin)
	if !reported() {
		t.Error("drops that go on are not reported")
	}
	table = Counters{} // the rules were written again
	look(2, 1, 1)
	look(0, 0, dropsEnd-1)
	if !reported() {
		t.Error("a pause ends it")
	}
	look(0, 0, 1)
	if reported() {
		t.Error("it is reported after its end")
	}
	if ps := d.Problems(); len(ps) != 0 {
		t.Errorf("problems %v at the end", ps)
	}
	if got, want := d.Total(), (Counters{Untracked: 10*3*(dropsBegin-1) + dropsBegin + 2, Refused: 100*refusedBegin + 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

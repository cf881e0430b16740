package socklb

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// step finds what changed, and only that.
func TestStep(t *testing.T) {
	at := func(n int) datapath.Frontend {
		return datapath.Frontend{Addr: addr(fmt.Sprintf("10.96.0.%d:80/TCP", n)), Backends: backends("10.0.0.1:80")}
	}
	a, b, c, d := at(1), at(2), at(3), at(4)
	copied, sticky, renamed, empty := at(2), b, b, b
	sticky.AffinitySeconds, renamed.Service, empty.Backends = 7, "default/web", nil
	type list = []datapath.Frontend
	for name, x := range map[string]struct {
		was, now, differ, gone list
		unsorted               bool
	}{
		"same":           {was: list{a, b, c}, now: list{a, b, c}},
		"other list":     {was: list{a, b, c}, now: list{a, copied, c}, differ: list{copied}},
		"other affinity": {was: list{a, b, c}, now: list{a, sticky, c}, differ: list{sticky}},
		"other name":     {was: list{a, b, c}, now: list{a, renamed, c}, differ: list{renamed}},
		"no backends":    {was: list{a, b, c}, now: list{a, empty, c}, differ: list{empty}},
		"new":            {was: list{b}, now: list{a, b, c}, differ: list{a, c}},
		"gone":           {was: list{a, b, c, d}, now: list{b, d}, gone: list{a, c}},
		"replaced":       {was: list{a, c}, now: list{b, d}, differ: list{b, d}, gone: list{a, c}},
		"all gone":       {was: list{a, b}, gone: list{a, b}},
		"order":          {was: list{a, b, c}, now: list{a, c, b}, unsorted: true},
		"twice":          {was: list{a, b, c}, now: list{a, b, b, c}, unsorted: true},
		"twice at first": {was: list{b}, now: list{a, a, b}, unsorted: true},
		"back":           {was: list{a, b, c}, now: list{b, a, b, c}, unsorted: true},
	} {
		differ, gone, sorted := step(x.was, x.now)
		if !slices.EqualFunc(differ, x.differ, alike) || !slices.EqualFunc(gone, x.gone, alike) || sorted == x.unsorted {
			t.Errorf("%s: %v, %v, %v; want %v, %v, %v", name, differ, gone, sorted, x.differ, x.gone, !x.unsorted)
		}
	}
}

func alike(a, b datapath.Frontend) bool { return a.Equal(b) && a.Service == b.Service }

// drawNext draws a wanted state as plans are: sorted, and most frontends share their list with the
// last one. Some are unsorted, or have an address twice.
func drawNext(t *rapid.T, last []datapath.Frontend) (next []datapath.Frontend) {
	for _, f := range last {
		switch rapid.IntRange(0, 9).Draw(t, "keep") {
		case 0:
			continue
		case 1:
			f.Backends = slices.Clone(f.Backends)
		case 2:
			f.AffinitySeconds++
		case 3:
			f.Backends = drawWanted(t).Backends
		}
		next = append(next, f)
	}
	next = append(next, rapid.SliceOfN(rapid.Custom(drawWanted), 0, 2).Draw(t, "new")...)
	if rapid.IntRange(0, 4).Draw(t, "unsorted") > 0 {
		slices.SortStableFunc(next, func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	}
	if rapid.IntRange(0, 4).Draw(t, "twice") > 0 {
		next = slices.CompactFunc(next, func(a, b datapath.Frontend) bool { return a.Addr == b.Addr })
	}
	return next
}

// Any sequence of wanted states does the same step by step as if each were compared with all that
// is installed: with maps that fill up, refusals by the kernel, invalid frontends, with and without
// prune, and with lists that are sorted or not.
func TestStepsDoTheSame(t *testing.T) {
	stepped := 0
	rapid.Check(t, func(t *rapid.T) {
		refused := map[l4.Addr]bool{}
		both := [2]*Fake{}
		for i := range both {
			both[i] = &Fake{MaxFrontends: 5, MaxBackends: 24, Fault: func(a l4.Addr) error {
				if refused[a] {
					return errors.New("refused")
				}
				return nil
			}}
			if err := both[i].init(); err != nil {
				t.Fatal(err)
			}
		}
		in, whole := both[0], both[1]
		var want []datapath.Frontend
		for range rapid.IntRange(1, 12).Draw(t, "states") {
			want = drawNext(t, want)
			clear(refused)
			if len(want) > 0 && rapid.IntRange(0, 3).Draw(t, "refuse") == 0 {
				refused[rapid.SampledFrom(want).Draw(t, "refused").Addr] = true
			}
			prune := rapid.IntRange(0, 3).Draw(t, "prune") > 0
			if in.table.applied != nil {
				stepped++
			}
			whole.table.applied = nil // so it compares everything
			problems, err := in.Reconcile(slices.Clone(want), prune)
			problems2, err2 := whole.Reconcile(want, prune)
			if fmt.Sprint(problems, err) != fmt.Sprint(problems2, err2) {
				t.Fatalf("step by step: %v, %v; as a whole: %v, %v", problems, err, problems2, err2)
			}
			have, _ := in.Frontends()
			have2, _ := whole.Frontends()
			if !slices.EqualFunc(have, have2, datapath.Frontend.Equal) {
				t.Fatalf("want %v:\nstep by step the maps hold %v\nas a whole %v", want, have, have2)
			}
		}
	})
	if stepped == 0 {
		t.Error("no state was reached step by step")
	}
}

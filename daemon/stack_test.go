package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/turn"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// fakePart notes each call in a log that it shares with the other parts. It looks at one list of what is wanted.
type fakePart struct {
	called  string
	of      func(want) []datapath.Route
	log     *[]string
	putErr  error
	cutErr  error
	refused []problem.Problem
	wait    time.Duration
	fresh   bool // of the last put
}

func (f *fakePart) name() string         { return f.called }
func (f *fakePart) same(a, b want) bool  { return datapath.SameList(f.of(a), f.of(b)) }
func (f *fakePart) again() time.Duration { return f.wait }

func (f *fakePart) put(_ context.Context, j job) ([]problem.Problem, error) {
	*f.log = append(*f.log, "put "+f.called)
	f.fresh = j.fresh
	return f.refused, f.putErr
}

func (f *fakePart) prune(context.Context, job) ([]problem.Problem, error) {
	*f.log = append(*f.log, "prune "+f.called)
	return nil, f.cutErr
}

// fakes is a stack of three parts: the first and the last look at routes, the second at nothing.
type fakes struct {
	*stack
	low, mid, top *fakePart
	log           []string
	now           time.Time
	caution       turn.Caution
	want          want
}

func newFakes() *fakes {
	f := &fakes{now: time.Unix(1000, 0), caution: turn.Exact, want: wants("10.0.0.0/8")}
	routes := func(w want) []datapath.Route { return w.Routes }
	f.low = &fakePart{called: "low", of: routes, log: &f.log}
	f.mid = &fakePart{called: "mid", of: func(want) []datapath.Route { return nil }, log: &f.log}
	f.top = &fakePart{called: "top", of: routes, log: &f.log}
	f.stack = newStack(func(string, time.Duration, error) {}, f.low, f.mid, f.top)
	return f
}

func wants(prefix string) (w want) {
	w.Routes = []datapath.Route{{Dst: netip.MustParsePrefix(prefix)}}
	return w
}

// turn is one, a second after the one before. It returns what was called.
func (f *fakes) turn() (calls string, again time.Duration, err error) {
	f.log, f.now = nil, f.now.Add(time.Second)
	_, again, err = f.apply(context.Background(), f.want, f.caution, f.now)
	return strings.Join(f.log, ", "), again, err
}

func (f *fakes) expect(t *testing.T, name, want string) {
	t.Helper()
	if got, _, _ := f.turn(); got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

const (
	allPuts   = "put low, put mid, put top"
	allPrunes = "prune top, prune mid, prune low"
)

func TestMakeBeforeBreak(t *testing.T) {
	f := newFakes()
	f.expect(t, "the first turn", allPuts+", "+allPrunes)
	f.want = wants("10.9.0.0/16")
	f.expect(t, "what changed is put before anything of it is pruned", "put low, put top, prune top, prune low")
}

func TestCautionStopsPrunes(t *testing.T) {
	for _, c := range []turn.Caution{turn.GrowOnly, turn.NoPrune} {
		f := newFakes()
		f.caution = c
		f.expect(t, c.String(), allPuts)
		f.expect(t, c.String()+", once more", "")
		f.caution = turn.Exact
		f.expect(t, "all have spoken", allPuts+", "+allPrunes)
	}
}

func TestSkipsWhatIsUnchanged(t *testing.T) {
	f := newFakes()
	f.turn()
	f.expect(t, "nothing changed", "")
	f.slots[0].disturbed.Store(true)
	f.expect(t, "disturbed", "put low, prune low")
	if f.low.fresh {
		t.Error("a disturbed part asks for what the watch vouches for")
	}
	f.expect(t, "no longer disturbed", "")
	f.slots[0].suspect.Store(true)
	f.want = wants("10.9.0.0/16")
	f.want.Routes = slices.Clone(f.want.Routes)
	f.slots[1].suspect.Store(true)
	f.expect(t, "what changed does not wait for what is merely suspect", "put low, put top, put mid, prune top, prune mid, prune low")
	f.expect(t, "no longer suspect", "")
}

func TestResync(t *testing.T) {
	f := newFakes()
	f.turn()
	f.now = f.now.Add(turn.Resync - 2*time.Second)
	f.expect(t, "early", "")
	f.want = wants("10.9.0.0/16")
	f.expect(t, "a change does not wait for parts that are due", "put low, put top, put mid, "+allPrunes)
	if !f.mid.fresh || f.low.fresh {
		t.Error("a resync takes nothing for granted; a change does")
	}
	f.expect(t, "afterwards", "")
}

func TestFailure(t *testing.T) {
	f := newFakes()
	f.low.putErr = errors.Join(errors.New("one"), errors.New("two"))
	problems, _, err := f.apply(context.Background(), f.want, f.caution, f.now)
	if got := strings.Join(f.log, ", "); got != allPuts || err == nil {
		t.Errorf("a part that fails stops the next, or no prune: %s, %v", got, err)
	}
	if len(problems) != 2 || problems[0].Object != "low" || problems[1].Message != "two" {
		t.Errorf("problems %v", problems)
	}
	f.expect(t, "what failed is tried in each turn", "put low")
	f.low.putErr = nil
	f.expect(t, "prunes wait until it works", "put low, "+allPrunes)

	f.want, f.mid.cutErr = wants("10.9.0.0/16"), errors.New("busy")
	f.slots[1].disturbed.Store(true)
	f.expect(t, "a prune that fails stops those below it", allPuts+", prune top, prune mid")
	if _, _, err := f.apply(context.Background(), f.want, f.caution, f.now); !errors.Is(err, f.mid.cutErr) {
		t.Errorf("error %v", err)
	}
	f.mid.cutErr = nil
	f.expect(t, "and is tried again alone", "prune mid, prune low")
	if _, _, err := f.turn(); err != nil {
		t.Errorf("after all works: %v", err)
	}
}

// What the kernel refuses stops nothing and is tried again, but less and less often. It is reported in each turn.
func TestRefusal(t *testing.T) {
	f := newFakes()
	f.low.refused = []problem.Problem{{Object: "peer b/n1", Message: "two nodes have its key"}}
	calls, again, err := f.turn()
	if calls != allPuts+", "+allPrunes || err != nil || again != turn.RefusedMin {
		t.Fatalf("%s, again in %s, %v", calls, again, err)
	}
	problems, again, _ := f.apply(context.Background(), f.want, f.caution, f.now)
	if len(problems) != 1 || again != turn.RefusedMin {
		t.Errorf("in a turn that does not try: problems %v, again in %s", problems, again)
	}
	var waits []time.Duration
	for range 10 {
		f.now = f.now.Add(turn.Resync)
		calls, again, _ := f.turn()
		if !strings.HasPrefix(calls, "put low") {
			t.Fatalf("not tried again: %s", calls)
		}
		waits = append(waits, again)
	}
	if waits[0] != 2*turn.RefusedMin || waits[1] != 4*turn.RefusedMin || waits[9] != 0 {
		t.Errorf("tried again in %v", waits)
	}
	f.low.refused[0].Warning = true
	f.now = f.now.Add(turn.Resync)
	if _, again, _ := f.turn(); again != 0 {
		t.Errorf("a warning is tried again in %s", again)
	}
}

func TestPartAsksForMore(t *testing.T) {
	f := newFakes()
	f.top.wait = 500 * time.Millisecond
	if _, again, _ := f.turn(); again != f.top.wait {
		t.Errorf("again in %s", again)
	}
	f.top.wait = 0
	f.expect(t, "when it is time", "put top, prune top")
	f.expect(t, "no more", "")
}

// A part that is disturbed while it is put is put once more.
func TestDisturbedMeanwhile(t *testing.T) {
	f := newFakes()
	f.turn()
	f.slots[0].disturbed.Store(true)
	f.slots[0].part = disturber{f.low, f.slots[0]}
	f.expect(t, "disturbed", "put low, prune low")
	f.slots[0].part = f.low
	f.expect(t, "disturbed meanwhile", "put low, prune low")
	f.expect(t, "in peace", "")
}

type disturber struct {
	*fakePart
	slot *slot
}

func (d disturber) put(ctx context.Context, j job) ([]problem.Problem, error) {
	defer d.slot.disturbed.Store(true)
	return d.fakePart.put(ctx, j)
}

func TestFlatten(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	if got := flatten(errors.Join(a, errors.Join(b, nil), c)); fmt.Sprint(got) != "[a b c]" || flatten(nil) != nil {
		t.Errorf("%v", got)
	}
}

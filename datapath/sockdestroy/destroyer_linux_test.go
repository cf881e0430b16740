package sockdestroy

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// scripted is a method that finds what a test sets.
type scripted struct {
	// try is called with each begin, from 1 on, and gives the outcomes.
	try     func(n int, targets []Target) map[uint64]outcome
	n       int
	targets []Target
	found   map[uint64]outcome
	here_   int
	err     error
}

func (s *scripted) begin(targets []Target) error {
	s.n++
	s.targets, s.found = targets, s.try(s.n, targets)
	return nil
}

func (s *scripted) here() (int, error) {
	s.here_++
	return len(s.targets) - len(s.found), s.err
}

func (s *scripted) end() (map[uint64]outcome, error) { return s.found, nil }
func (s *scripted) close() error                     { return nil }

func allOf(targets []Target, o outcome) map[uint64]outcome {
	out := map[uint64]outcome{}
	for _, t := range targets {
		out[t.Cookie] = o
	}
	return out
}

func TestDestroyer(t *testing.T) {
	if !inside(t) {
		return
	}
	record := Record{Cookie: 7, Proto: l4.UDP, Frontend: at("10.96.0.1:53"), Backend: at("10.1.0.1:53"), Connected: true}
	none := func(int, []Target) map[uint64]outcome { return nil }
	all := func(_ int, targets []Target) map[uint64]outcome { return allOf(targets, outcome{verdict: destroyed}) }

	setUp := func(t *testing.T, s *scripted) (*Destroyer, *[]Record) {
		records := []Record{record}
		d := New(Config{Records: func() ([]Record, error) { return records, nil }, Log: testutil.Logger(t)})
		d.method, d.grace = s, func() {}
		return d, &records
	}
	pass := func(t *testing.T, d *Destroyer, want Result) {
		t.Helper()
		got, err := d.Destroy(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "result", got, want)
	}
	t.Run("nothing stale costs nothing", func(t *testing.T) {
		s := &scripted{try: all}
		d, records := setUp(t, s)
		*records = nil
		d.cfg.ProcFS = "/nonexistent"
		pass(t, d, Result{})
		check(t, "searches", s.n+s.here_, 0)
	})
	t.Run("a record that a late hook writes is found", func(t *testing.T) {
		d, records := setUp(t, &scripted{try: all})
		*records = nil
		d.grace = func() { *records = []Record{record} }
		pass(t, d, Result{UDP: 1, Namespaces: 1})
	})
	t.Run("the walk ends when all are found", func(t *testing.T) {
		newPod(t)
		s := &scripted{try: all}
		d, _ := setUp(t, s)
		pass(t, d, Result{UDP: 1, Namespaces: 1})
	})
	t.Run("what connects late is tried again", func(t *testing.T) {
		s := &scripted{try: func(n int, targets []Target) map[uint64]outcome {
			if n < 2 {
				return nil
			}
			return allOf(targets, outcome{verdict: destroyed})
		}}
		d, _ := setUp(t, s)
		pass(t, d, Result{UDP: 1, Namespaces: 2})
		check(t, "searches", s.n, 2)
	})
	t.Run("what is closed meanwhile is not", func(t *testing.T) {
		s := &scripted{}
		d, records := setUp(t, s)
		s.try = func(int, []Target) map[uint64]outcome { *records = nil; return nil }
		pass(t, d, Result{Namespaces: 1})
		check(t, "searches", s.n, 1)
	})
	t.Run("what is elsewhere is left alone", func(t *testing.T) {
		s := &scripted{try: func(_ int, targets []Target) map[uint64]outcome {
			return allOf(targets, outcome{verdict: elsewhere})
		}}
		d, _ := setUp(t, s)
		pass(t, d, Result{Namespaces: 1})
		check(t, "searches", s.n, 1)
	})
	t.Run("what is not found is not looked for at each call", func(t *testing.T) {
		s := &scripted{try: none}
		d, records := setUp(t, s)
		now := time.Now()
		d.now = func() time.Time { return now }
		pass(t, d, Result{Namespaces: 3, Left: 1, Again: again[0]})
		check(t, "searches", s.n, 3)
		now = now.Add(again[0] / 4)
		pass(t, d, Result{Left: 1, Again: again[0] * 3 / 4})
		check(t, "searches a moment later", s.n, 3)
		now = now.Add(again[0])
		s.try = all
		pass(t, d, Result{UDP: 1, Namespaces: 1})
		pass(t, d, Result{})
		// Stale, not stale, and stale again: another matter.
		*records = nil
		pass(t, d, Result{})
		*records = []Record{record}
		pass(t, d, Result{UDP: 1, Namespaces: 1})
	})
	t.Run("what is never found is given up", func(t *testing.T) {
		s := &scripted{try: none}
		d, _ := setUp(t, s)
		now := time.Now()
		d.now = func() time.Time { return now }
		for n := range giveUp - 1 {
			pass(t, d, Result{Namespaces: 3, Left: 1, Again: again[n]})
			now = now.Add(again[n])
		}
		pass(t, d, Result{Namespaces: 3, Left: 1})
		now = now.Add(again[giveUp-1] / 2)
		pass(t, d, Result{})
		check(t, "searches", s.n, 3*giveUp)
	})
	t.Run("a refusal is an error with its cause", func(t *testing.T) {
		s := &scripted{try: func(_ int, targets []Target) map[uint64]outcome {
			return allOf(targets, outcome{refused, unix.EPERM})
		}}
		d, _ := setUp(t, s)
		r, err := d.Destroy(t.Context(), nil, nil)
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("got error %v", err)
		}
		check(t, "result", r, Result{Namespaces: 1, Left: 1})
	})
	t.Run("a namespace that fails does not hold up the others", func(t *testing.T) {
		newPod(t)
		s := &scripted{try: none, err: unix.EIO}
		d, _ := setUp(t, s)
		r, err := d.Destroy(t.Context(), nil, nil)
		if !errors.Is(err, unix.EIO) {
			t.Errorf("got error %v", err)
		}
		check(t, "result", r, Result{Namespaces: 2, Left: 1})
	})
	t.Run("records that cannot be read", func(t *testing.T) {
		d := New(Config{Records: func() ([]Record, error) { return nil, unix.EIO }})
		if _, err := d.Destroy(t.Context(), nil, nil); !errors.Is(err, unix.EIO) {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("many targets are taken in parts", func(t *testing.T) {
		s := &scripted{try: all}
		d, records := setUp(t, s)
		*records = nil
		for i := range maxTargets + 1 {
			r := record
			r.Cookie = uint64(i + 1)
			*records = append(*records, r)
		}
		d.cfg.Log = New(Config{}).cfg.Log
		pass(t, d, Result{UDP: maxTargets + 1, Namespaces: 2})
	})
}

// TestMountedNamespace: a namespace without any process, kept by a mount, is searched; and one that is unmounted
// is passed over.
func TestMountedNamespace(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m := newMachine(t, forced, Policy{})
		m.set(old)
		var fd int
		point := mountNamespace(t, func() error {
			return (*Client)(nil).Open(Call{Kind: unix.SOCK_DGRAM, Form: v4, To: v4.vip()}, &fd)
		})
		defer unix.Close(fd)
		want := m.set(new_)
		check(t, "destroyed", m.pass(want).UDP, 1)
		var answer string
		err := (*Client)(nil).Receive(Call{FD: fd}, &answer)
		if !errors.Is(err, unix.ECONNABORTED) {
			t.Errorf("got %q, %v", answer, err)
		}
		spaces, err := namespaces("/proc")
		if err != nil {
			t.Fatal(err)
		}
		one := func() (int, error) { return 1, nil }
		before, err := visit(t.Context(), "/proc", spaces, one)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		n, err := visit(t.Context(), "/proc", spaces, one)
		if n != before-1 || err != nil {
			t.Errorf("visited %d namespaces after %d, with error %v; want one less", n, before, err)
		}
	})
}

// TestStorm: sockets that connect while backends flip. After a call none that came before is with the old one.
func TestStorm(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m, p := newMachine(t, forced, Policy{}), newPod(t)
		places, total, aborts, late, rounds := []place{old, new_}, 0, 0, 0, testutil.Rounds(20, 4)
		for round := range rounds {
			now := places[round%2]
			m.set(places[1-round%2])
			p.call("Start", Call{Kind: unix.SOCK_DGRAM, Form: v4, To: v4.vip(), N: testutil.Rounds(3000, 500)}, nil)
			time.Sleep(2 * time.Millisecond) // so that some are there and more come
			want := m.set(now)
			r := m.pass(want)
			aborts += r.UDP
			for r.Left > 0 { // a thread that was interrupted amid its connect()
				late++
				time.Sleep(r.Again)
				r = m.pass(want)
				aborts += r.UDP
			}
			var sockets []int
			p.call("Stop", Call{}, &sockets)
			total += len(sockets)
			var wrong []string
			p.call("Wrong", Call{N: int(now)}, &wrong)
			if len(wrong) > 0 {
				t.Errorf("round %d: %d of %d sockets with the wrong backend: %q", round, len(wrong), len(sockets), wrong[:1])
			}
		}
		t.Logf("%d sockets connected during %d flips, %d of them destroyed; %d times some were not to be found at once", total, rounds, aborts, late)
		if aborts == 0 {
			t.Error("none met a flip: the test shows nothing")
		}
	})
}

func TestProbe(t *testing.T) {
	testutil.NeedRoot(t)
	want := map[string]bool{"socket iterators that destroy": newerThan(t, 6, 5), "sock_diag that destroys": true}
	for _, f := range Probe() {
		t.Logf("%+v", f)
		check(t, f.Name, f.OK, want[f.Name])
		delete(want, f.Name)
	}
	check(t, "features that were not asked for", len(want), 0)
}

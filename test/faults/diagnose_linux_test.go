package faults

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

const (
	// promised is within which time a fault is named everywhere.
	promised = 10 * time.Second
	// recovery is how long all may take to be well again on a busy machine: a tunnel that failed must carry
	// for ten seconds, and a problem of gossip is shown for half a minute.
	recovery = 90 * time.Second
)

// fault is a row of TestDiagnose.
type fault struct {
	name string
	// make returns the machines, which are started and well before inject. It can be nil: two clusters of a
	// machine each.
	make   func(t *testing.T) *ill
	inject func(w *ill)
	// seen is the code of the first problem that daemons report, by the number of the machine from 1.
	seen map[int]problem.Code
	// check is what strait check finds not to hold.
	check string
	// cure does what the problem says, which must match says. It gets the parts that the expression has.
	says string
	cure func(w *ill, said []string)
	// lingers: its problems are shown for half a minute after the cure.
	lingers bool
}

// ill are the machines of a row, and their daemons.
type ill struct {
	*testing.T
	machines []*machine
	lives    map[*machine]*process
	// late are machines that are not started at first.
	late  map[*machine]bool
	looks map[*machine]*look
	undo  func() // what inject did
	// began is when what is measured began, if that was not with inject. Passed is how much time passed.
	began  time.Time
	passed map[*machine]time.Duration
}

// TestDiagnose: each fault is named by strait status, strait check, a metric and the page of strait ui within
// the promised time, at each machine that is looked at, and as the first problem. What the problem says cures
// it.
//
// It runs alone: it measures a time. Its rows run beside each other, because they mostly wait; in two halves,
// because each daemon takes one of the 128 inotify instances that a user has. All of a half are well before the
// first fault, so that no start disturbs what is measured.
func TestDiagnose(t *testing.T) {
	testutil.NeedTun(t)
	for tool, pkg := range map[string]string{"nft": "nftables", "ss": "iproute2"} {
		if _, err := exec.LookPath(tool); err != nil {
			testutil.Missing(t, "needs "+tool+": install the package "+pkg)
		}
	}
	if _, err := programs(); err != nil {
		t.Fatal(err)
	}
	rows := slices.Clone(diagnoses)
	slices.SortStableFunc(rows, func(a, b fault) int { // so that only one half waits for what lingers
		return cmp.Compare(map[bool]int{false: 1}[a.lingers], map[bool]int{false: 1}[b.lingers])
	})
	for half := range slices.Chunk(rows, (len(rows)+1)/2) {
		diagnose(t, half)
	}
}

// diagnose runs rows beside each other.
func diagnose(t *testing.T, faults []fault) {
	var rows, starting sync.WaitGroup
	begin := make(chan struct{}, 3) // so many rows start their daemons at a time
	for _, f := range faults {
		starting.Add(1)
		rows.Go(func() {
			started := sync.OnceFunc(starting.Done)
			defer started() // also if -run leaves the row out
			t.Run(f.name, func(t *testing.T) {
				begin <- struct{}{}
				release := sync.OnceFunc(func() { <-begin })
				defer release()
				w := f.begin(t)
				release()
				started()
				starting.Wait()
				f.run(w)
			})
		})
	}
	rows.Wait()
}

// begin starts the machines of a row, and waits until all of them are well.
func (f fault) begin(t *testing.T) *ill {
	t.Helper()
	var w *ill
	if f.make == nil {
		w = newIll(t, 2)
	} else {
		w = f.make(t)
	}
	for _, m := range w.machines {
		if !w.late[m] && w.lives[m] == nil {
			w.start(m)
		}
	}
	w.well()
	for number := range f.seen {
		m := w.machines[number-1]
		if !w.late[m] {
			w.looks[m] = w.look(m)
			testutil.Eventually(t, recovery, w.looks[m].well)
		}
	}
	return w
}

func (f fault) run(w *ill) {
	w.Helper()
	f.inject(w)
	for number := range f.seen {
		if m := w.machines[number-1]; w.looks[m] == nil { // it was started late
			w.lives[m].answers(w.T)
			w.looks[m] = w.look(m)
		}
	}
	began := time.Now() // a fault that comes with a daemon is there from its start on
	if !w.began.IsZero() {
		began = w.began
	}
	var done sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for number, code := range f.seen {
		done.Go(func() {
			err := w.named(w.machines[number-1], code, f.check, began)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
	said := f.said(w)
	ended := time.Now()
	f.cure(w, said)
	w.well()
	for _, l := range w.looks {
		testutil.Eventually(w, recovery, l.well)
	}
	w.Logf("well again %s after the cure", time.Since(ended).Round(time.Second/10))
}

// said waits until the first problem of a machine says what to do, and returns the parts of that.
func (f fault) said(w *ill) (parts []string) {
	w.Helper()
	testutil.Eventually(w, patience, func() error {
		var texts []string
		for number, code := range f.seen {
			p, err := w.looks[w.machines[number-1]].first(code)
			if err != nil {
				return err
			}
			if parts = regexp.MustCompile(f.says).FindStringSubmatch(p.String()); parts != nil {
				return nil
			}
			texts = append(texts, p.String())
		}
		return fmt.Errorf("no problem says %q: %q", f.says, texts)
	})
	return parts
}

// named waits until a fault is named in all places. The others show what the status has
// at that moment. Looking itself takes time on a busy machine, so that each of them can be late by one look.
func (w *ill) named(m *machine, code problem.Code, check string, began time.Time) (err error) {
	for _, place := range []struct {
		name string
		look func(l *look) error
	}{
		{"status", func(l *look) (err error) { _, err = l.first(code); return err }},
		{"metric", func(l *look) error { return l.metric(code) }},
		{"page", func(l *look) error { return l.page(code) }},
		{"text of status", func(l *look) error { return l.text(code) }},
		{"check", func(l *look) error { return l.check(code, check) }},
	} {
		for err = place.look(w.looks[m]); err != nil && time.Since(began) < promised; err = place.look(w.looks[m]) {
			time.Sleep(100 * time.Millisecond)
		}
		took := time.Since(began)
		if err == nil && took > promised && place.name == "status" {
			err = fmt.Errorf("%s after %s", code, took)
		}
		if err != nil {
			return fmt.Errorf("machine %d: not within %s in the %s: %w", m.number, promised, place.name, err)
		}
		w.Logf("machine %d: %s in the %s after %s", m.number, code, place.name, took.Round(time.Second/10))
	}
	return nil
}

// newIll makes so many machines, each of a cluster of its own, that believe each other.
func newIll(t *testing.T, n int) *ill {
	t.Helper()
	w := &ill{T: t, machines: bridged(t, n), lives: map[*machine]*process{}, late: map[*machine]bool{}, looks: map[*machine]*look{}, passed: map[*machine]time.Duration{}}
	pinned(t, w.machines)
	return w
}

// start starts the daemon of a machine.
func (w *ill) start(m *machine) {
	w.Helper()
	w.lives[m] = m.start(w.T)
}

// restart stops the daemon of a machine as systemd does, and starts it.
func (w *ill) restart(m *machine) {
	w.Helper()
	w.lives[m].stop(w.T)
	w.start(m)
}

// well waits until every daemon that runs is well, and hears all others.
func (w *ill) well() {
	w.Helper()
	for m, life := range w.lives {
		testutil.Eventually(w, recovery, func() error { return w.isWell(m, life) })
	}
}

func (w *ill) isWell(m *machine, life *process) error {
	s, err := life.status()
	switch {
	case err != nil:
		return err
	case !s.Ready || len(s.Waiting) > 0:
		return fmt.Errorf("machine %d waits for %q", m.number, s.Waiting)
	case len(s.Problems) > 0:
		return fmt.Errorf("machine %d: %s", m.number, s.Problems[0])
	}
	nodes := 0
	for _, c := range s.Clusters {
		nodes += c.Alive
		if c.Tunnels != nil {
			for state := range c.Tunnels.States {
				if state != "carrying" {
					return fmt.Errorf("machine %d: a tunnel to cluster %s is %s", m.number, c.Name, state)
				}
			}
		}
	}
	if nodes != len(w.lives) {
		return fmt.Errorf("machine %d hears %d nodes, want %d", m.number, nodes, len(w.lives))
	}
	return nil
}

// nft loads rules on a machine.
func (w *ill) nft(m *machine, rules string) {
	w.Helper()
	_, err := command(m.ns, rules, "nft", "-f", "-")
	must(w.T, err)
}

// unblock removes a table of rules.
func (w *ill) unblock(m *machine, table string) {
	w.Helper()
	_, err := command(m.ns, "", "nft", "delete", "table", "inet", table)
	must(w.T, err)
}

// edit replaces a part of a file of a machine, which must have it.
func (w *ill) edit(m *machine, file, from, to string) {
	w.Helper()
	text := m.read(w.T, file)
	if !strings.Contains(text, from) {
		w.Fatalf("%s of machine %d has no %q:\n%s", file, m.number, from, text)
	}
	m.write(w.T, file, strings.ReplaceAll(text, from, to))
}

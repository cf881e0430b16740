package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// alarm is a Problem of a tunnel that a daemon reported for some time.
type alarm struct {
	problem.Problem
	from, to time.Time // to is zero while it is reported
}

func (a alarm) String() string {
	return fmt.Sprintf("%s for %s: %s", a.Code, a.to.Sub(a.from).Round(time.Second/10), a.Problem)
}

// alarms are all that a daemon reported of tunnels since it was first asked.
type alarms struct {
	life *process
	mu   sync.Mutex
	all  []alarm
}

// listen asks a daemon for its Problems again and again, until the test ends.
func listen(t *testing.T, p *process) *alarms {
	a := &alarms{life: p}
	var done sync.WaitGroup
	t.Cleanup(done.Wait)
	done.Go(func() {
		for t.Context().Err() == nil {
			if s, err := p.status(); err == nil {
				a.note(s.Problems, time.Now())
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return a
}

func (a *alarms) note(now []problem.Problem, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	same := func(x, y problem.Problem) bool { return x.Code == y.Code && x.Object == y.Object }
	for i := range a.all {
		if x := &a.all[i]; x.to.IsZero() && !slices.ContainsFunc(now, func(p problem.Problem) bool { return same(p, x.Problem) }) {
			x.to = at
		}
	}
	for _, p := range now {
		if strings.HasPrefix(string(p.Code), "STR42") &&
			!slices.ContainsFunc(a.all, func(x alarm) bool { return x.to.IsZero() && same(p, x.Problem) }) {
			a.all = append(a.all, alarm{Problem: p, from: at})
		}
	}
}

// of returns the alarms about a machine, and those about all, which may mean it.
func (a *alarms) of(m *machine) (out []alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.all {
		if x.Object == "tunnels" || x.Object == m.tunnel() {
			out = append(out, x)
		}
	}
	return out
}

func (m *machine) tunnel() string { return fmt.Sprintf("tunnel to c%d/n1", m.number) }

// detection is how long a fault may last until it is reported, on a busy machine.
const detection = time.Minute

// reports waits until a fault of a machine's tunnel is reported, and logs how long that took.
func (a *alarms) reports(t *testing.T, m *machine, code problem.Code, fault string, since time.Time) {
	t.Helper()
	testutil.Eventually(t, time.Until(since)+detection, func() error {
		of := a.of(m)
		for _, x := range of {
			if x.Code == code && (x.to.IsZero() || x.to.After(since)) {
				t.Logf("%s: %s after %s", fault, code, x.from.Sub(since).Round(time.Second/10))
				return nil
			}
		}
		return fmt.Errorf("%s: no %s of %s: %v", fault, code, m.tunnel(), of)
	})
}

// ends waits until nothing is reported of a machine's tunnel, which is in one of these states. It
// logs when the last report ended.
func (a *alarms) ends(t *testing.T, m *machine, fault string, since time.Time, states ...string) {
	t.Helper()
	var of []alarm
	testutil.Eventually(t, time.Until(since)+detection, func() error {
		of = a.of(m)
		if i := slices.IndexFunc(of, func(x alarm) bool { return x.to.IsZero() }); i >= 0 {
			return fmt.Errorf("%s: still reported: %s", fault, of[i])
		}
		return a.is(m, states...)
	})
	of = slices.DeleteFunc(of, func(x alarm) bool { return x.to.Before(since) })
	if len(of) == 0 {
		t.Logf("%s: not reported, and well %s later at most", fault, time.Since(since).Round(time.Second/10))
		return
	}
	last := slices.MaxFunc(of, func(x, y alarm) int { return x.to.Compare(y.to) })
	t.Logf("%s: solved after %s", fault, last.to.Sub(since).Round(time.Second/10))
}

// is returns an error if the tunnel to a machine is in none of the states.
func (a *alarms) is(m *machine, states ...string) error {
	tunnel, err := a.state(m)
	if err == nil && !slices.Contains(states, tunnel.State) {
		err = fmt.Errorf("the %s is %q, want one of %q", m.tunnel(), tunnel.State, states)
	}
	return err
}

func (a *alarms) state(m *machine) (api.Tunnel, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	list, err := client.OnSocket(a.life.m.path("run/strait.sock")).Nodes(ctx)
	if err != nil {
		return api.Tunnel{}, err
	}
	i := slices.IndexFunc(list.Items, func(n api.Node) bool { return n.Cluster == fmt.Sprintf("c%d", m.number) })
	if i < 0 || list.Items[i].Tunnel == nil {
		return api.Tunnel{}, fmt.Errorf("no %s", m.tunnel())
	}
	return *list.Items[i].Tunnel, nil
}

// neverAccused demands that nothing was ever reported of a machine's tunnel.
func (a *alarms) neverAccused(t *testing.T, m *machine, who string) {
	t.Helper()
	if of := a.of(m); len(of) > 0 {
		t.Errorf("c%d accuses %s: %v", a.life.m.number, who, of)
	}
}

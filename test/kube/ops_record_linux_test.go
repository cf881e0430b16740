package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/kubelab"
)

// sighting is a problem that a daemon reported, from when until when.
type sighting struct {
	problem.Problem
	node        string
	first, last time.Time
}

func (s sighting) String() string {
	return fmt.Sprintf("%s on %s for %.1f s: %s", s.Code, s.node, s.last.Sub(s.first).Seconds(), s.Problem)
}

// record has what daemons reported.
type record struct {
	mu   sync.Mutex
	all  []*sighting
	asks int // how many answers there were
	// moments are what the test did, and since when.
	moments []moment
}

type moment struct {
	what string
	from time.Time
}

// startRecord asks the daemon of each node twice a second, by the socket on the node, until the test ends.
func (o *ops) startRecord(t *testing.T) *record {
	t.Helper()
	r := &record{}
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	for _, c := range o.Topology.Clusters {
		for _, n := range c.Nodes {
			done.Go(func() {
				for tick := time.Tick(500 * time.Millisecond); ctx.Err() == nil; <-tick {
					r.note(n.Name, o.problemsOf(ctx, n))
				}
			})
		}
	}
	return r
}

// problemsOf are those of the daemon on a node; nil if it does not answer.
func (o *ops) problemsOf(ctx context.Context, n kubelab.Node) []problem.Problem {
	out, err := o.OnNode(ctx, n.Name, "curl", "-sS", "--max-time", "2", "--unix-socket", "/run/strait/strait.sock", "http://strait/v1/status")
	var s api.StatusAnswer
	if err != nil || json.Unmarshal([]byte(out), &s) != nil || s.Kind != api.KindStatus {
		return nil
	}
	if s.Problems == nil {
		return []problem.Problem{}
	}
	return s.Problems
}

// digits in a message change while the problem stays.
var digits = regexp.MustCompile(`\d+`)

func (r *record) note(node string, now []problem.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now != nil {
		r.asks++
	}
	at := time.Now()
	for _, p := range now {
		text := digits.ReplaceAllString(p.String(), "#")
		known := false
		for _, s := range r.all {
			if s.node == node && s.Code == p.Code && digits.ReplaceAllString(s.Problem.String(), "#") == text && at.Sub(s.last) < 5*time.Second {
				s.last, known = at, true
				break
			}
		}
		if !known {
			r.all = append(r.all, &sighting{p, node, at, at})
		}
	}
}

// begin notes what the test does from now on.
func (r *record) begin(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moments = append(r.moments, moment{what, time.Now()})
}

// during is what the test did at a time.
func (r *record) during(at time.Time) string {
	out := "before"
	for _, m := range r.moments {
		if !m.from.After(at) {
			out = m.what
		}
	}
	return out
}

// mustBeTrue fails the test for each problem for which is returns false: one that was not true when
// it was reported.
func (r *record) mustBeTrue(t *testing.T, is func(s sighting) bool) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asks == 0 {
		t.Error("no daemon answered")
	}
	for _, s := range r.all {
		during := r.during(s.first)
		if is(*s) {
			t.Logf("%s: %s", during, s)
		} else {
			t.Errorf("false alarm, %s: %s", during, s)
		}
	}
	t.Logf("%d answers had %d problems", r.asks, len(r.all))
}

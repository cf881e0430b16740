package daemon

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"strait.io/strait/daemon/turn"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// want is what the kernel of this node should hold.
type want struct {
	datapath.Desired
	// optOut are the pods whose connections are left alone.
	optOut optOutPods
	// settled: what is not wanted is gone; see turn.Apply.
	settled bool
}

// job is one run of a part.
type job struct {
	want
	caution turn.Caution
	// fresh makes the part ask the kernel even for what the watches would have reported.
	fresh bool
}

// part is one thing that the kernel holds for strait. Parts build on each other: a route leads into
// a device, and a frontend sends connections where a route leads. A part is a putter, a pruner, or
// both.
type part interface {
	// name names the part in metrics and Problems.
	name() string
	// same reports whether a part that has done a has nothing to do for b. It is called in each
	// turn and must be cheap.
	same(a, b want) bool
	// again returns how soon the part wants to run again although nothing changed; 0 if it does
	// not.
	again() time.Duration
}

// putter puts what is wanted into force, and removes nothing that may be in use. An object that the
// kernel refuses is a Problem; an error means that the part could not do its work.
type putter interface {
	put(ctx context.Context, j job) ([]problem.Problem, error)
}

// pruner removes what is not wanted.
type pruner interface {
	prune(ctx context.Context, j job) ([]problem.Problem, error)
}

// stack applies parts in order, and runs only those that have something to do.
type stack struct {
	slots   []*slot // bottom up
	observe func(target string, took time.Duration, err error)
}

// slot is a part and the state of its last runs.
type slot struct {
	part
	// disturbed: another program changed what the part put. The part is put again before those
	// above it.
	disturbed atomic.Bool
	// suspect: something happened that may concern the part. It is put again, but only after the
	// parts that changed.
	suspect atomic.Bool

	done      job
	ran       bool // put at least once
	worked    bool // in this turn
	pruned    bool // nothing that only earlier jobs wanted is left
	lastPut   outcome
	lastPrune outcome
	retry     turn.Retry
	next      time.Time // when to run again at the latest
}

// outcome is the result of one run of a part.
type outcome struct {
	problems []problem.Problem
	err      error
}

func newStack(observe func(string, time.Duration, error), parts ...part) *stack {
	s := &stack{observe: observe}
	for _, p := range parts {
		s.slots = append(s.slots, &slot{part: p})
	}
	return s
}

// apply makes the kernel hold what is wanted, making before breaking:
//
//  1. Bottom up, it puts the parts whose wanted value changed, that were disturbed, or that failed.
//  2. It puts the parts that are merely due for a check. As far as strait knows, they hold what
//     is wanted, so a change need not wait for them.
//  3. Top down, if the caution is Exact and no part failed to put, it prunes what is not wanted.
//
// A part that fails to put does not stop the next part. It stops all pruning, because what it could
// not put may replace what would be pruned. A part that fails to prune stops the parts below it. An
// object that the kernel refuses stops nothing.
//
// The Problems and the error are those of all parts, whether they ran in this turn or not. Again is
// how soon apply should be called again; 0 if the next change, disturbance or resync is soon
// enough.
func (s *stack) apply(ctx context.Context, w want, c turn.Caution, now time.Time) (problems []problem.Problem, again time.Duration, err error) {
	for _, p := range s.slots {
		if p.worked = p.changed(w, c); p.worked {
			s.put(ctx, p, job{want: w, caution: c, fresh: !p.ran || p.lastPut.err != nil})
		}
	}
	for _, p := range s.slots {
		suspected := p.suspect.Swap(false)
		if p.worked || !suspected && now.Before(p.next) {
			continue
		}
		p.worked = true
		s.put(ctx, p, job{want: w, caution: c, fresh: !suspected})
	}
	if c == turn.Exact && s.failed(func(p *slot) error { return p.lastPut.err }) == nil {
		s.prune(ctx)
	}
	for _, p := range s.slots {
		p.schedule(now)
		problems = append(problems, p.problems()...)
		if wait := max(p.next.Sub(now), time.Millisecond); wait < turn.Resync && (again == 0 || wait < again) {
			again = wait
		}
	}
	return problems, again, s.failed(func(p *slot) error { return errors.Join(p.lastPut.err, p.lastPrune.err) })
}

// disturb and suspect mark a slot.
func disturb(p *slot) { p.disturbed.Store(true) }
func suspect(p *slot) { p.suspect.Store(true) }

// mark marks the parts with the given names.
func (s *stack) mark(with func(*slot), names ...string) {
	for _, p := range s.slots {
		if slices.Contains(names, p.name()) {
			with(p)
		}
	}
}

// changed reports whether the part may not hold what is wanted.
func (p *slot) changed(w want, c turn.Caution) bool {
	return !p.ran || p.disturbed.Load() || p.lastPut.err != nil || p.done.caution != c || !p.same(p.done.want, w)
}

func (s *stack) put(ctx context.Context, p *slot, j job) {
	p.disturbed.Store(false) // a disturbance from now on needs another run
	p.lastPut = outcome{}
	if made, is := p.part.(putter); is {
		p.lastPut = s.step(p, func() ([]problem.Problem, error) { return made.put(ctx, j) })
	}
	p.done, p.ran, p.lastPrune, p.pruned = j, true, outcome{}, false
}

func (s *stack) prune(ctx context.Context) {
	for _, p := range slices.Backward(s.slots) {
		cut, is := p.part.(pruner)
		if !is || p.pruned {
			continue
		}
		p.worked = true
		p.lastPrune = s.step(p, func() ([]problem.Problem, error) { return cut.prune(ctx, p.done) })
		if p.pruned = p.lastPrune.err == nil; !p.pruned {
			return
		}
	}
}

func (s *stack) step(p *slot, f func() ([]problem.Problem, error)) outcome {
	start := time.Now()
	problems, err := f()
	s.observe(p.name(), time.Since(start), err)
	return outcome{problems, err}
}

// failed joins one error from each part.
func (s *stack) failed(of func(*slot) error) error {
	var errs []error
	for _, p := range s.slots {
		errs = append(errs, of(p))
	}
	return errors.Join(errs...)
}

// schedule sets when the part runs again if nothing that concerns it happens before.
func (p *slot) schedule(now time.Time) {
	if !p.worked {
		return
	}
	refused := func(p problem.Problem) bool { return !p.Warning }
	left := slices.ContainsFunc(p.lastPut.problems, refused) || slices.ContainsFunc(p.lastPrune.problems, refused)
	p.next = now.Add(p.retry.Wait(left, p.again()))
}

// problems returns the Problems and errors of the last runs.
func (p *slot) problems() []problem.Problem {
	out := slices.Concat(p.lastPut.problems, p.lastPrune.problems)
	for _, err := range slices.Concat(flatten(p.lastPut.err), flatten(p.lastPrune.err)) {
		out = append(out, problem.Named(p.name(), "").Problem(problem.Problem{Code: problem.PartFailed, Message: err.Error()}))
	}
	return out
}

// flatten splits joined errors, so that each becomes a Problem of its own.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}

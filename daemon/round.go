package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/turn"
)

// apply is one turn of the loop: it carries out what package turn decides.
func (d *Daemon) apply(ctx context.Context) error {
	start := time.Now()
	r := &round{Daemon: d}
	r.in, r.problems = d.inputs()
	for steps := turn.Decide(r.in); len(steps) > 0; steps = steps[1:] {
		if _, again := steps[0].(turn.Look); !again {
			r.do(ctx, steps[0])
			continue
		}
		r.look()
		steps = append(steps[:1], turn.Decide(r.in)...)
	}
	d.greeted = true
	d.metrics.Observe("plan", time.Since(start), r.err)
	if r.err == nil && r.refused {
		return errRefused
	}
	return r.err
}

// errRefused has the loop try again, with back-off, what the kernel refused. The turn itself has done its work.
var errRefused = errors.New("the kernel refused some objects")

// inputs are what is known when a turn begins.
func (d *Daemon) inputs() (in turn.Inputs, problems []clustermesh.Problem) {
	in = turn.Inputs{Self: d.self(), First: !d.greeted, Derived: d.config.derived(), Leads: d.gossip.Leader()}
	in.Local, in.Sourced = d.source.Local()
	problems = d.seed(in.Local)
	if d.kube != nil {
		problems = slices.Concat(problems, d.kube.leader.Problems(), identityProblems(d.config, d.who, d.kube.source.Identity()))
	}
	in.Synced, in.Missing = d.gossip.Synced()
	var more []clustermesh.Problem
	in.Record, more = d.record(in.Local, in.Sourced)
	return in, slices.Concat(in.Local.Problems, problems, more)
}

// round is one turn while it is carried out.
type round struct {
	*Daemon
	in       turn.Inputs
	moment   *moment
	problems []clustermesh.Problem
	refused  bool // the kernel refused some objects, and may not the next time
	err      error
}

// look reads what gossip holds and plans from it.
func (r *round) look() {
	r.in.State = r.gossip.State()
	result := r.planner.Plan(r.in.State)
	r.in.Plan = &result
}

// do carries out one step.
func (r *round) do(ctx context.Context, step turn.Step) {
	switch s := step.(type) {
	case turn.Publish:
		r.gossip.Publish(s.Content)
	case turn.Tell:
		if r.gossip.PublishCluster(s.Content) {
			r.againIn(0) // the plan that follows may give out addresses that the record lacks
		}
		r.in.Told = true
	case turn.Apply:
		problems, err := r.kernel.apply(ctx, r.in.Plan.Desired, s.Caution)
		if wait := r.kernel.stale.again; wait > 0 {
			r.againIn(wait)
		}
		r.problems = slices.Concat(r.problems, problems, r.optOut())
		r.err = err
		r.refused = slices.ContainsFunc(problems, func(p clustermesh.Problem) bool { return !p.Warning })
	case turn.Greet:
		r.kernel.greet(ctx)
	case turn.Show:
		r.show(s)
	case turn.Write:
		if r.kube != nil {
			r.writeObjects(r.in.Local, r.moment)
		}
	case turn.Again:
		r.againIn(0)
	}
}

// show makes what this turn knows and did the present moment.
func (r *round) show(s turn.Show) {
	m := &moment{state: r.in.State, result: *r.in.Plan, waiting: s.Waiting}
	if s.Names && len(r.config.DNS.Listen) > 0 {
		m.table, m.namespaces = r.tableOf(m.result, r.in.Local.Namespaces), r.in.Local.Namespaces
	}
	m.problems = slices.Concat(r.problems, m.result.Problems)
	if r.err == nil {
		m.applied = time.Now()
	}
	r.moment = m
	r.store(m)
}

package daemon

import (
	"context"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/health"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/daemon/turn"
)

// apply runs one turn of the loop: it carries out what package turn decides.
func (d *Daemon) apply(ctx context.Context) error {
	start := time.Now()
	r := &round{Daemon: d}
	r.in, r.host, r.problems = d.inputs()
	for steps := turn.Decide(r.in); len(steps) > 0; steps = steps[1:] {
		if _, again := steps[0].(turn.Look); !again {
			r.do(ctx, steps[0])
			continue
		}
		r.look()
		steps = append(steps[:1], turn.Decide(r.in)...)
	}
	if r.in.Plan != nil {
		d.history.Note(r.noted())
	}
	d.firstTurnDone = true
	d.metrics.Observe("plan", time.Since(start), r.err)
	return r.err
}

// inputs returns what is known when a turn begins, and the machine's own addresses.
func (d *Daemon) inputs() (in turn.Inputs, host plan.Host, problems []clustermesh.Problem) {
	in = turn.Inputs{Self: d.self(), First: !d.firstTurnDone, Derived: d.config.derived(), Leads: d.gossip.Leader()}
	in.Synced, in.Missing = d.gossip.Synced()
	var unpinned []clustermesh.Problem
	in.Behind, unpinned = d.followConfigs() // asked after Synced, so that Local follows from all that was synced
	if in.Local, in.Sourced = d.source.Local(); in.Sourced {
		d.gossip.Accept(in.Local.Accept, in.Local.LocalNamespaces)
	}
	problems = slices.Concat(unpinned, d.follow(in.Local))
	problems = slices.Concat(problems, d.kube.problems(d.config, d.who))
	in.Fresh, in.Results = d.gossip.Fresh(), d.kube.results()
	host, err := d.kernel.host()
	if err != nil {
		problems = append(problems, addressesUnknown(d.config.Node, err))
		in.Synced, in.Missing = false, "this machine's addresses cannot be read"
	}
	var more []clustermesh.Problem
	in.Record, more = d.record(in.Local, in.Sourced)
	in.NoTunnels, in.Age = d.config.Mesh.on() && !d.tunneled(), time.Since(d.born)
	return in, host, slices.Concat(in.Local.Problems, problems, more)
}

// tunneled reports whether the tunnels' device has been there in this life.
func (d *Daemon) tunneled() bool {
	_, device := d.kernel.opened()
	return device != nil
}

// round is a turn that is being carried out.
type round struct {
	*Daemon
	in       turn.Inputs
	host     plan.Host
	moment   *moment
	current  bool // the plan was made from what gossip holds
	planned  plan.Inputs
	problems []clustermesh.Problem
	err      error
	// health is what the tunnels carried when the plan was made, and unprobed why that is unknown.
	health   health.Tunnels
	unprobed error
}

// want returns what the kernel should hold.
func (r *round) want(s turn.Apply) want {
	pods := r.kube.pods()
	return want{Desired: r.in.Plan.Desired, settled: s.Settled, optOut: optOutPods{pods.Known, pods.OptOut}}
}

// look reads what gossip holds and plans from it, unless the plan is current.
func (r *round) look() {
	if r.current {
		return
	}
	r.in.State = r.gossip.State()
	r.health, r.unprobed = r.kernel.health()
	in := plan.Inputs{
		State: r.in.State, Self: r.in.Self, Config: r.planConfig(), Now: time.Now(),
		Learning: !r.in.Sourced || !r.in.Synced, Host: r.host, Far: r.far(), Faults: r.health.Faults(),
		Remotes: r.trust.remotes, ClusterIPs: r.in.Local.ClusterIPs, Guests: r.files.guests.Get(),
	}
	if r.past == (plan.Past{}) {
		in.Device = r.kernel.had()
	}
	var result plan.Result
	r.planned = in
	result, r.past = plan.Plan(in, r.past)
	if r.in.Plan = &result; result.Next > 0 {
		r.againIn(result.Next)
	}
}

// do carries out one step.
func (r *round) do(ctx context.Context, step turn.Step) {
	switch s := step.(type) {
	case turn.Publish:
		r.gossip.Publish(s.Content)
	case turn.PublishCluster:
		changed := r.gossip.PublishCluster(s.Content)
		if r.current = !changed; changed {
			r.againIn(0) // the next plan may give out addresses that the record lacks
		}
		r.in.PublishedCluster = true
	case turn.Apply:
		problems, again, err := r.kernel.stack.apply(ctx, r.want(s), s.Caution, time.Now())
		if again > 0 {
			r.againIn(again)
		}
		r.problems, r.err = slices.Concat(r.problems, problems), err
		r.noteCanaries()
		switch {
		case !r.in.Silent():
		case r.tunneled():
			r.againIn(0) // what was not published can be now
		default:
			r.againIn(time.Second)
		}
	case turn.Handshake:
		r.kernel.handshake(ctx, s.Wait)
	case turn.Show:
		r.show(s)
	case turn.Write:
		r.kube.write(r.Daemon, r.in.Local, r.moment)
	case turn.Again:
		r.againIn(0)
	}
}

// show stores what this turn knows and did as the current moment.
func (r *round) show(s turn.Show) {
	m := &moment{state: r.in.State, result: *r.in.Plan, waiting: s.Waiting}
	r.kernel.aim(m.result, m.state)
	ill := r.ill(m)
	if s.Names && len(r.config.DNS.Listen) > 0 {
		m.namespaces, m.own = r.in.Local.Namespaces, r.in.Local.OwnNamespaces
		m.table = r.tableOf(m.result, m.namespaces, m.own)
	}
	r.trustsAll.Store(r.trust.all)
	o := r.openness(m.state, r.in.Local)
	m.problems = slices.Concat(r.problems, m.result.Problems, r.leaderless(m.state, time.Now()), o.Problems(r.self().Cluster), ill, publicNames(r.config.DNS, m.result, m.table))
	r.makeKeys(o, m.state, r.in.Local)
	r.publishMember(m.state, r.in.Local)
	if r.err == nil {
		m.applied = time.Now()
	}
	r.moment = m
	r.store(m)
}

// ill returns what lasts too long: tunnels that do not carry, nodes that are not heard, and Services with
// nothing behind them. It schedules the turn in which there may be more.
func (r *round) ill(m *moment) []clustermesh.Problem {
	now := time.Now()
	hearing := health.Hearing{Self: r.self().Origin(), Heard: r.gossip.Heard(), Began: r.born}
	tunnels, soon := r.health.Problems(r.unprobed, m.state, now)
	unheard, sooner := hearing.Problems(m.state, now)
	unserved, soonest := r.unserved.Problems(m.result, now)
	for _, again := range []time.Duration{soon, sooner, soonest} {
		if again > 0 {
			r.againIn(again)
		}
	}
	return slices.Concat(tunnels, unheard, unserved)
}

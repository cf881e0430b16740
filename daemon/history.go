package daemon

import (
	"cmp"
	"log/slog"
	"path/filepath"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/history"
	"strait.io/strait/daemon/history/ring"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// newHistory makes what keeps the history. It opens nothing.
func newHistory(c Config, log *slog.Logger) *ring.Ring {
	return ring.New(ring.Config{
		Dir: filepath.Join(c.StateDir, "history"), MaxBytes: c.History.maxBytes(), MaxAge: c.History.MaxAge.Duration,
		Log: log.With("part", "history"),
	})
}

// noted is the turn as the history takes it: what it was planned from, and what came of it.
func (r *round) noted() *history.Turn {
	t := &history.Turn{Inputs: r.planned, Result: r.in.Plan, Leads: r.in.Leads}
	if !r.firstTurnDone {
		t.Start = cmp.Or(r.build.Version, "an unknown version")
	}
	if r.moment != nil {
		t.Problems = r.moment.problems
	}
	if r.err != nil {
		t.Error = r.err.Error()
	}
	return t
}

// mostItems bounds an answer.
const mostItems = 2000

var errNoHistory = problem.Refuse("set history.maxBytes in its configuration, and ask for what happens from then on", "this node keeps no history: history.maxBytes is 0")

// History returns what changed on this node, and why.
func (d *Daemon) History(q api.HistoryQuery) (*api.History, error) {
	m := d.now()
	switch {
	case m == nil:
		return nil, nil
	case d.config.History.maxBytes() == 0:
		return nil, errNoHistory
	}
	span, items, leftOut, err := d.history.Items(q.Since, q.Until, q.Keeps, mostItems)
	if err != nil {
		return nil, err
	}
	h := api.NewHistory(d.viewpoint(m), span.Begins, span.Bytes, items)
	h.LeftOut = leftOut
	return h, nil
}

// ServicesAt lists the services as they were at a moment, for this node or another: the plan of
// that moment is made again. What kernels held and counted is not in it.
func (d *Daemon) ServicesAt(at time.Time, node string) (*api.ServiceList, error) {
	switch {
	case d.config.History.maxBytes() == 0:
		return nil, errNoHistory
	case at.After(time.Now()):
		return nil, problem.Refuse("ask without a time for what is now", "%s is in the future, by this node's clock", at.Format(time.RFC3339))
	}
	then, err := d.history.At(at)
	if err != nil {
		return nil, err
	}
	t := then.Turn()
	self, err := plan.From(t.Inputs.State, t.Inputs.Self, node)
	if err != nil {
		return nil, err
	}
	result := *t.Result
	if self != t.Inputs.Self {
		result, _ = plan.Plan(then.For(self), plan.Past{})
	}
	m := &moment{state: t.Inputs.State, result: result}
	from := api.Viewpoint{
		Cluster: string(self.Cluster), Node: string(self.Node), Clusters: len(m.state.Clusters()), Time: time.Now(), Computed: self != t.Inputs.Self,
		Past: &api.Past{At: t.Time(), Next: then.Next, Started: then.Started, Since: then.Since, Error: t.Error},
	}
	return api.NewServiceList(from, computed(m, self, result)), nil
}

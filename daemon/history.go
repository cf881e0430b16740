package daemon

import (
	"cmp"
	"log/slog"
	"path/filepath"

	"strait.io/strait/daemon/history"
	"strait.io/strait/daemon/history/ring"
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
		t.Start = cmp.Or(r.version, "an unknown version")
	}
	if r.moment != nil {
		t.Problems = r.moment.problems
	}
	if r.err != nil {
		t.Error = r.err.Error()
	}
	return t
}

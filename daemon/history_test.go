package daemon

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/history"
	"strait.io/strait/daemon/plan"
)

// TestPastAnswers: a daemon answers where connections went before an export was gone, and what changed.
func TestPastAnswers(t *testing.T) {
	v := twoClusters()
	var c Config
	c.StateDir = t.TempDir()
	d := &Daemon{config: c, log: slog.New(slog.DiscardHandler), kube: noServer{}, who: who{Cluster: v.self.Cluster}, history: newHistory(c, slog.New(slog.DiscardHandler))}
	d.config.Node = string(v.self.Node)
	d.current.Store(v.moment)
	var past plan.Past
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	note := func(at time.Time, s clustermesh.State, start string) {
		in := plan.Inputs{State: s, Self: v.self, Config: d.planConfig(), Now: at}
		var r plan.Result
		r, past = plan.Plan(in, past)
		d.history.Note(&history.Turn{Inputs: in, Result: &r, Start: start})
	}
	note(begin, v.state, "v1")
	gone := v.state
	for o, r := range v.state.Records.All() {
		r.Content.Exports = nil
		gone.Records = gone.Records.With(o, r)
	}
	note(begin.Add(time.Minute), gone, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.history.Run(ctx); err != nil { // writes what waits
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]int{30 * time.Second: 1, 2 * time.Minute: 0} {
		l, err := d.ServicesAt(begin.Add(after), "")
		if err != nil || len(l.Items) != want || l.SeenFrom.Past == nil {
			t.Errorf("after %s: %+v, %v; want %d services", after, l, err, want)
		}
	}
	if l, err := d.ServicesAt(begin.Add(30*time.Second), "b/n1"); err != nil || !l.SeenFrom.Computed || len(l.Items) != 1 {
		t.Errorf("from another node: %+v, %v", l, err)
	}
	var unnoted *api.Unnoted
	if _, err := d.ServicesAt(begin.Add(-time.Hour), ""); !errors.As(err, &unnoted) {
		t.Errorf("before the first note: %v", err)
	}
	if _, err := d.ServicesAt(time.Now().Add(time.Hour), ""); err == nil {
		t.Error("the future is known")
	}
	h, err := d.History(api.HistoryQuery{Since: begin.Add(time.Second)})
	if err != nil || len(h.Items) != 1 || len(h.Items[0].Effects) != 1 || h.Items[0].Effects[0].Service != "default/serve" || !h.Begins.Equal(begin) {
		t.Errorf("%+v, %v", h, err)
	}
	zero := int64(0)
	d.config.History.MaxBytes = &zero
	if _, err := d.History(api.HistoryQuery{}); err == nil {
		t.Error("a daemon without a history has one")
	}
}

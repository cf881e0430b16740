package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// died are the items of a node while a machine of another cluster dies, and then comes back.
func died() []api.HistoryItem {
	cause := func(kind api.CauseKind, subject, text string) api.Cause {
		return api.Cause{Kind: kind, Subject: subject, Text: text}
	}
	return []api.HistoryItem{
		{Seq: 1, Time: ago(26 * time.Hour), Causes: []api.Cause{cause(api.CauseStarted, "straitd", "v1 started")}},
		{Seq: 7, Time: ago(20 * time.Minute), Causes: []api.Cause{cause(api.CauseContact, "node us-west/n4", "alive → silent")},
			Effects: []api.Effect{{Service: "shop/cart", From: "zone 100 % (us-west)", To: "region 100 % (eu-central)", Why: "its machine does not answer",
				Clusters: []api.ClusterEffect{{Cluster: "eu-central", Added: 2}, {Cluster: "us-west", Withdrawn: 40}}}}},
		{Seq: 8, Time: ago(20*time.Minute - 4*time.Second), Causes: []api.Cause{cause(api.CauseDead, "node us-west/n4", "is dead"),
			cause(api.CauseRecord, "node us-west/n1", "claims 1 node silent")}, Peers: -1},
		{Seq: 9, Time: ago(5 * time.Minute), Causes: []api.Cause{cause(api.CauseEndpoint, "shop/cart", "1 endpoint became ready in us-east")},
			Error: "netfilter: permission denied"},
	}
}

func (s *source) History(q api.HistoryQuery) (*api.History, error) {
	v := s.view.Load()
	if v == nil {
		return nil, nil
	}
	h := api.NewHistory(v.Status.Viewpoint(), ago(26*time.Hour), 4096, died())
	return h.Keep(q), nil
}

func (s *source) ServicesAt(at time.Time, node string) (*api.ServiceList, error) {
	if at.Before(ago(26 * time.Hour)) {
		return nil, &api.Unnoted{Refusal: problem.Refusal{Message: "nothing is noted of then", Try: "ask for a later moment"}}
	}
	l := s.Services()
	if l != nil {
		l.SeenFrom.Past = &api.Past{At: ago(20 * time.Minute), Next: ago(5 * time.Minute), Started: node != "", Since: ago(time.Hour), Error: "netfilter: permission denied"}
	}
	return l, nil
}

func TestTimeline(t *testing.T) {
	well, _ := startServer(t, wellView())
	for _, c := range []struct{ name, args string }{
		{"timeline", "timeline --since 30h"},
		{"timeline-wide", "timeline us-west/n4 -o wide"},
		{"timeline-ascii", "timeline --since 2026-11-01 --until 1h --ascii"},
		{"explain-at", "explain default/serve --at 13:50"},
		{"help-timeline", "timeline --help"},
	} {
		t.Run(c.name, func(t *testing.T) {
			golden(t, c.name, world(append(strings.Fields(c.args), "--socket", well)...).run(t))
		})
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"timeline shop/nothing", 0, "nothing changed since"},
		{"timeline --since soon", 2, `"soon" is no time`},
		{"timeline --since 1m --until 2m", 2, "is before --since"},
		{"explain default/serve --at 2026-11-01", 3, "ask for a later moment"},
		{"explain default/serve --at 25:00", 2, "is no time"},
		{"explain default/nothing --at 13:50", 1, "no cluster exports a service"},
		{"explain default/serve --from us-east/n2 --at 13:50", 0, "straitd started then"},
	} {
		if got := world(append(strings.Fields(c.args), "--socket", well)...).run(t); got.code != c.code || !strings.Contains(got.stdout+got.stderr, c.want) {
			t.Errorf("%s: %d, want %d with %q\n%s%s", c.args, got.code, c.code, c.want, got.stdout, got.stderr)
		}
	}
	var data struct{ Events []api.Event }
	got := world("timeline", "-o", "json", "--socket", well).run(t)
	if err := json.Unmarshal([]byte(got.stdout), &data); err != nil || len(data.Events) != 2 || data.Events[0].Withdrawn != 40 {
		t.Errorf("%v: %+v", err, data)
	}
}

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/fake"
	"strait.io/strait/daemon/api/server"
	"strait.io/strait/daemon/api/support"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/internal/testutil"
)

// now is the clock of the program in these tests. That of the sample's daemon stands still a little before.
func now() time.Time { return fake.Sample().Status.Time.Add(30 * time.Minute) }

// daemon answers from a view until the test ends. Alone, it cannot ask other nodes.
func daemon(t *testing.T, v *fake.View) (socket string, source *fake.Source) {
	t.Helper()
	dir, err := os.MkdirTemp("", "strait-t-") // t.TempDir can be longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	socket, source = filepath.Join(dir, "strait.sock"), fake.NewSource(v)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.New(server.Config{Socket: socket}, source).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
		os.RemoveAll(dir)
	})
	testutil.Eventually(t, 10*time.Second, func() error {
		_, err := client.OnSocket(socket).Status(t.Context())
		return err
	})
	return socket, source
}

// pageOf is a page of the daemon behind a socket. Its context is not one of a cluster.
func pageOf(socket string) *page {
	a := &cli.App{Program: "strait", Socket: socket, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Now: now}
	a.From.Namespace = "strait-system"
	return newPage(a)
}

// bundled is a page of a support bundle of the daemon behind a socket.
func bundled(t *testing.T, socket string) *page {
	t.Helper()
	b := support.New(now(), "test")
	if err := b.Collect(t.Context(), client.OnSocket(socket), ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	var text bytes.Buffer
	if err := b.Write(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	a, c := pageOf("/nonexistent").app, &cobra.Command{}
	a.AskFlags(c)
	a.From.File = file
	if err := c.PreRunE(c, nil); err != nil {
		t.Fatal(err)
	}
	return newPage(a)
}

// view asks a page for a view of a type.
func view[V any](t *testing.T, p *page, name, query string) V {
	t.Helper()
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.views()[name](t.Context(), q)
	if err != nil {
		t.Fatalf("%s?%s: %v", name, query, err)
	}
	return got.(V)
}

// inUse is a view with connections to two services.
func inUse() *fake.View {
	v := fake.Sample()
	bytes := func(n uint64) *uint64 { return &n }
	front := v.Services[0].Frontends[0]
	v.Flows = []api.Flow{
		{Client: api.FlowClient{Cluster: "a", Node: "n1", Name: "shop/web-1", Kind: api.ClientPod}, Service: "default/serve", Frontend: front.Addr, Port: "http",
			Backend:    api.FlowBackend{Addr: netip.MustParseAddrPort("10.0.1.1:80"), Cluster: "b", Node: "n1", Pod: "serve-1", Tier: "clusterset"},
			FlowCounts: api.FlowCounts{Open: 3, Sent: bytes(2048), Received: bytes(4096)}, RTT: 90},
		{Client: api.FlowClient{Cluster: "a", Node: "n1", Name: "10.0.0.9", Kind: api.ClientAddress}, Service: "default/cart", Frontend: front.Addr,
			Backend: api.FlowBackend{Addr: netip.MustParseAddrPort("10.0.0.7:80")}, FlowCounts: api.FlowCounts{Open: 9}},
	}
	return v
}

// TestPageFlows: the rows of strait flows, of one service, with rates once there are two counts,
// and with what did not answer.
func TestPageFlows(t *testing.T) {
	socket, source := daemon(t, inUse())
	p, moved := pageOf(socket), time.Duration(0)
	p.app.Now = func() time.Time { return now().Add(moved) }
	v := view[flowsView](t, p, "flows", "name=default/serve")
	want := []string{"shop/web-1", "a/n1", "default/serve:http", "serve-1", "b/n1", "3", "2.0 KiB", "4.0 KiB", "90.0 ms"}
	if len(v.Table.Rows) != 1 || !slices.Equal(v.Table.Rows[0], want) {
		t.Errorf("the rows are %q, want %q", v.Table.Rows, want)
	}
	if v.Seen != "clients on a/n1" || v.Total != "3 open · – new/s · – refused/s" || v.Line != "strait flows default/serve --node '*' --socket "+socket {
		t.Errorf("%+v", v)
	}
	if len(v.Notes) != 1 || !strings.HasPrefix(v.Notes[0], "! cluster a: only node n1 was asked: ") {
		t.Errorf("the notes are %q", v.Notes)
	}
	next := inUse()
	next.Status.Time = next.Status.Time.Add(2 * time.Second)
	next.Services[0].Frontends[0].Connects += 6
	next.Services[0].Frontends[0].Endpoints[1].Connects += 6
	source.Store(next)
	moved = 2 * time.Second
	v = view[flowsView](t, p, "flows", "name=default/serve")
	if v.Total != "3 open · 3.0 new/s · 0 refused/s" {
		t.Errorf("the total is %q", v.Total)
	}
	if want := [][]string{{"b", "3", "3.0", "2.0 KiB", "4.0 KiB"}, {"a", "0", "0", "–", "–"}}; !slices.EqualFunc(v.Clusters.Rows, want, slices.Equal[[]string]) {
		t.Errorf("by cluster: %q, want %q", v.Clusters.Rows, want)
	}
	// What is older says nothing about now.
	moved += time.Hour
	if v = view[flowsView](t, p, "flows", "name=default/serve"); !strings.Contains(v.Total, "– new/s") {
		t.Errorf("after an hour without a page, the total is %q", v.Total)
	}
	if v = view[flowsView](t, p, "flows", "name=default/none"); len(v.Table.Rows) != 0 || v.Total != "" {
		t.Errorf("of a service without connections: %+v", v)
	}
	var exit *cli.ExitError
	if _, err := p.flows(t.Context(), url.Values{}); !errors.As(err, &exit) || exit.Code != cli.ExitUsage {
		t.Errorf("without a name: %v", err)
	}
}

// TestPageFlowsOfBundle: those that were open when the bundle was made, of the one service, without rates.
func TestPageFlowsOfBundle(t *testing.T) {
	socket, _ := daemon(t, inUse())
	p := bundled(t, socket)
	for range 2 {
		v := view[flowsView](t, p, "flows", "name=default/serve")
		if len(v.Table.Rows) != 1 || v.Table.Rows[0][0] != "shop/web-1" || v.Total != "3 open · – new/s · – refused/s" {
			t.Errorf("%+v", v)
		}
	}
}

// TestPageOfThePast: the view of a service at a moment has what strait explain --at has, says that
// it is of the past, and ends with the command for the same moment.
func TestPageOfThePast(t *testing.T) {
	v := fake.Sample()
	began := v.Status.Time
	v.History = []api.HistoryItem{{Seq: 1, Time: began}}
	socket, _ := daemon(t, v)
	p := pageOf(socket)
	at := began.Add(time.Minute)
	got := view[serviceView](t, p, "service", "name=default/serve&at="+at.Format(time.RFC3339Nano))
	if len(got.Past) != 1 || !strings.HasPrefix(got.Past[0], "clusterset of 3 clusters · seen from a/n1 · as noted at 2026-11-20 14:00:00 UTC, by its clock, and nothing changed since") {
		t.Errorf("the moment is %q", got.Past)
	}
	if got.Before != "2026-11-20T13:59:59.999999999Z" || got.Next != "" {
		t.Errorf("the turns beside it are at %q and %q", got.Before, got.Next)
	}
	if want := "strait explain default/serve --at 2026-11-20T14:01:00Z --socket " + socket; got.Line != want {
		t.Errorf("the line is %q, want %q", got.Line, want)
	}
	want, err := client.OnSocket(socket).ExplainAt(t.Context(), "default/serve", "", at)
	if err != nil {
		t.Fatal(err)
	}
	rows := sheetOf(p, table.Explained, table.Candidates(want.Service.Frontends[0]), table.Form{}, false).Rows
	if len(got.Frontends) != 1 || !slices.EqualFunc(got.Frontends[0].Table.Rows, rows, slices.Equal[[]string]) || !strings.Contains(got.Frontends[0].Line, "new connections went to") {
		t.Errorf("the frontends are %+v, want the rows %q", got.Frontends, rows)
	}
	if now := view[serviceView](t, p, "service", "name=default/serve"); now.Past != nil || strings.Contains(now.Line, "--at") {
		t.Errorf("now: %+v", now)
	}
	for query, want := range map[string]string{
		"at=2026-11-01": "nothing is noted of 2026-11-01T00:00:00Z", "at=soon": `"soon" is no time`, "at=13:00": "nothing is noted of 2026-11-20T13:00:00Z",
	} {
		q, _ := url.ParseQuery("name=default/serve&" + query)
		if _, err := p.service(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}

// noted are what a node noted while a machine of another cluster died, and since.
func noted() []api.HistoryItem {
	at, cause := fake.Sample().Status.Time, func(kind api.CauseKind, subject, text string) []api.Cause {
		return []api.Cause{{Kind: kind, Subject: subject, Text: text}}
	}
	effects := []api.Effect{{Service: "default/serve", From: "clusterset 100 % (b)", To: "nowhere"}}
	for i := range 8 {
		effects = append(effects, api.Effect{Service: fmt.Sprintf("default/more-%d", i), From: "zone 100 % (a)"})
	}
	return []api.HistoryItem{
		{Seq: 1, Time: at.Add(-26 * time.Hour), Causes: cause(api.CauseStarted, "straitd", "v1 started")},
		{Seq: 2, Time: at, Causes: cause(api.CauseContact, "node b/n2", "alive → silent"), Effects: effects, MoreEffects: 3},
		{Seq: 3, Time: at.Add(4 * time.Second), Causes: cause(api.CauseDead, "node b/n2", "is dead\x1b[31m")},
		{Seq: 4, Time: at.Add(20 * time.Minute), Causes: cause(api.CauseEndpoint, "default/cart", "1 endpoint became ready in a")},
	}
}

// TestPageTimeline: causes with their effects, the newest first, as far back as is chosen, with links to the
// services, now and then.
func TestPageTimeline(t *testing.T) {
	v := fake.Sample()
	v.History = noted()
	socket, _ := daemon(t, v)
	for _, p := range []*page{pageOf(socket), bundled(t, socket)} {
		live := p.app.From.File == ""
		for query, want := range map[string]string{
			"":                             "default/cart, node b/n2",
			"since=15m":                    "default/cart",
			"since=all":                    "default/cart, node b/n2, straitd",
			"since=all&name=b":             "node b/n2",
			"name=default/more-3":          "node b/n2",
			"name=default/none":            "",
			"since=2026-11-20T14:10:00Z":   "default/cart",
			"since=15m&name=default/serve": "",
		} {
			got := view[timelineView](t, p, "timeline", query)
			var subjects []string
			for _, name := range got.Table.Names {
				words := strings.Fields(name)
				subjects = append(subjects, strings.Join(words[:min(len(words), 1+strings.Count(words[0], "node"))], " "))
			}
			if s := strings.Join(subjects, ", "); s != want || len(got.Events) != len(got.Table.Rows) {
				t.Errorf("%s: %s, want %s", query, s, want)
			}
		}
		got := view[timelineView](t, p, "timeline", "since=all")
		death := got.Table.Rows[1]
		if i := slices.Index(got.Table.Columns, "WHAT"); death[i] != "node b/n2 alive → silent, is dead?[31m" {
			t.Errorf("what happened is %q", death)
		}
		e, at := got.Events[1], "2026-11-20T14:00:04Z"
		if !live {
			at = "" // a bundle has not what plans were made from
		}
		if len(e.Services) != mostLinked || e.Services[0] != "default/serve" || e.More != 6 || e.At != at {
			t.Errorf("it leads to %+v", e)
		}
		if last := len(got.Notes) - 1; last < 0 || !strings.HasPrefix(got.Notes[0], "! a/n1 has noted what happened since 2026-11-19 12:00:00") ||
			live && !strings.HasPrefix(got.Notes[last], api.Bad) {
			t.Errorf("the notes are %q", got.Notes)
		}
		if want := "strait timeline --since 2026-11-19T12:00:00Z -o wide --node '*' "; !strings.HasPrefix(got.Line, want) && live || got.Seen != "noted by a/n1" || got.Zone != "UTC" {
			t.Errorf("seen %q, zone %q, line %q", got.Seen, got.Zone, got.Line)
		}
		q := url.Values{"since": {"soon"}}
		if _, err := p.timeline(t.Context(), q); err == nil || !strings.Contains(err.Error(), `"soon" is no time`) {
			t.Errorf("since soon: %v", err)
		}
	}
}

// TestPageOfContexts: flows and the timeline are of all clusters. One that cannot be reached is a
// note, and no error; links lead to the context that noted a change.
func TestPageOfContexts(t *testing.T) {
	v := inUse()
	v.History = noted()
	socket, _ := daemon(t, v)
	a := pageOf("/nonexistent").app
	a.From.Contexts = []string{"c1", "c2"}
	a.Reach = func(_ context.Context, at cli.Place) (*client.Client, error) {
		if at.Context == "c2" {
			return nil, &api.Failure{Reason: api.NoAnswer, Message: "context c2: no route to host", Try: "see whether its API server runs"}
		}
		return client.OnSocket(socket), nil
	}
	p := newPage(a)
	f := view[flowsView](t, p, "flows", "name=default/serve")
	if len(f.Table.Rows) != 1 || f.Seen != "clients on 1 of 2 nodes of 1 cluster" || f.Line != "strait flows default/serve --context c1 --context c2" {
		t.Errorf("%+v", f)
	}
	if i := slices.Index(f.Notes, "✗ context c2: no route to host"); i < 0 || f.Notes[i+1] != "try  see whether its API server runs" {
		t.Errorf("the notes are %q", f.Notes)
	}
	l := view[timelineView](t, p, "timeline", "name=default/serve")
	if len(l.Events) != 1 || l.Events[0].Context != "c1" || l.Line != "strait timeline default/serve -o wide --context c1 --context c2" {
		t.Errorf("%+v", l)
	}
	if !slices.Contains(l.Notes, "✗ context c2: no route to host") {
		t.Errorf("the notes are %q", l.Notes)
	}
	a.Reach = func(context.Context, cli.Place) (*client.Client, error) {
		return nil, &api.Failure{Reason: api.NoAnswer, Message: "no route to host"}
	}
	if _, err := newPage(a).timeline(t.Context(), url.Values{}); err == nil || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("if no cluster can be reached: %v", err)
	}
}

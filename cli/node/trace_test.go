package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/fake"
)

// holding is a view of node n1 of a cluster, which holds records.
func holding(cluster string, records ...api.Member) *fake.View {
	v := fake.Sample()
	v.Status.Cluster, v.Members = cluster, append([]api.Member{{Cluster: cluster, State: "here"}, {Cluster: cluster, Node: "n1", State: "self", Stamp: "1/1"}}, records...)
	return v
}

// traced runs strait trace with contexts that lead to daemons of their names. The others lead nowhere.
func traced(t *testing.T, daemons map[string]*fake.View, contexts, name string) (list *api.TraceList, code int, err error) {
	t.Helper()
	sockets := map[string]string{}
	for name, v := range daemons {
		sockets[name], _ = daemon(t, v)
	}
	var out bytes.Buffer
	a := &cli.App{Output: "json", Stdout: &out, Stderr: &out, Now: time.Now}
	a.From.Contexts = strings.Fields(contexts)
	a.Reach = func(_ context.Context, p cli.Place) (*client.Client, error) {
		if sockets[p.Context] == "" {
			return nil, &api.Failure{Reason: api.NoAnswer, Message: "context " + p.Context + " leads nowhere"}
		}
		return client.OnSocket(sockets[p.Context]), nil
	}
	cmd := TraceCommand(a)
	cmd.SetArgs(strings.Fields(name))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cli.TypeErrors(cmd)
	if err = cmd.Execute(); err != nil {
		var exit *cli.ExitError
		if code = -1; errors.As(err, &exit) {
			code = exit.Code
		}
	}
	list = &api.TraceList{}
	if out.Len() > 0 && json.Unmarshal(out.Bytes(), list) != nil {
		t.Fatalf("strait trace %s: %v\n%s", name, err, out.String())
	}
	return list, code, err
}

// outcomes are what a list shows, as "ORIGIN=OUTCOME/HOPS".
func outcomes(l *api.TraceList) string {
	var out []string
	for _, x := range l.Items {
		var hops []string
		for _, h := range x.Hops {
			hops = append(hops, h.Node)
		}
		out = append(out, x.Origin+"="+string(x.Outcome)+" by "+strings.Join(hops, ", "))
	}
	return strings.Join(out, "; ")
}

// TestTraceOfContexts: a record is followed from the first context's cluster into the others; those of
// a service are known if any context knows them.
func TestTraceOfContexts(t *testing.T) {
	at := fake.Sample().Status.Time
	old := api.Member{Cluster: "b", State: "joined", Stamp: "7/1", Received: at.Add(-2 * time.Minute), From: "b/n1"}
	last := api.Member{Cluster: "b", State: "joined", Stamp: "7/2", Received: at.Add(-2 * time.Minute), From: "b/n1"}
	wrote := holding("b")
	wrote.Members[0].Stamp, wrote.Members[0].Written = "7/2", at.Add(-time.Minute)
	wrote.Services[0].Exporters = []string{"b"}
	unaware := holding("a", old)
	unaware.Services, unaware.Members[1].Written = nil, at
	for _, c := range []struct {
		what, contexts, name string
		daemons              map[string]*fake.View
		want                 string
		code                 int
	}{
		{"it hangs between two clusters", "a b", "b", map[string]*fake.View{"a": holding("a", old), "b": wrote}, "b=hangs by a/n1, b/n1", cli.ExitProblem},
		{"the last version has come", "a b", "b", map[string]*fake.View{"a": holding("a", last), "b": wrote}, "b=current by a/n1, b/n1", 0},
		{"the other cluster was not asked", "a", "b", map[string]*fake.View{"a": holding("a", old)}, "b=unknown by a/n1, b/n1", cli.ExitUnknown},
		{"another context does not answer", "a b c", "b", map[string]*fake.View{"a": holding("a", last), "b": wrote}, "b=current by a/n1, b/n1", cli.ExitUnknown},
		{"a service that only the other cluster knows yet", "a b", "default/serve", map[string]*fake.View{"a": unaware, "b": wrote},
			"b=hangs by a/n1, b/n1; a/n1=current by a/n1", cli.ExitProblem},
		{"the same by its namespace", "a b", "-n default serve", map[string]*fake.View{"a": unaware, "b": wrote},
			"b=hangs by a/n1, b/n1; a/n1=current by a/n1", cli.ExitProblem},
	} {
		got, code, err := traced(t, c.daemons, c.contexts, c.name)
		if outcomes(got) != c.want || code != c.code {
			t.Errorf("%s: %s, exit code %d, want %s, %d: %v", c.what, outcomes(got), code, c.want, c.code, err)
		}
	}
}

// TestTraceOfNothing: a name of nothing is an error that says what to do.
func TestTraceOfNothing(t *testing.T) {
	a := map[string]*fake.View{"a": holding("a")}
	for _, c := range []struct {
		name, want string
		code       int
	}{
		{"c", "there is no cluster c, as seen from a/n1", cli.ExitProblem},
		{"default/srve", "did you mean default/serve?", cli.ExitProblem},
		{"b/n7", "and no node is called b/n7; ", cli.ExitProblem},
		{"-n default srve", "did you mean default/serve?", cli.ExitProblem},
		{"default/serve:80", "is not a name", cli.ExitUsage},
		{"a/", "is not a name", cli.ExitUsage},
	} {
		if _, code, err := traced(t, a, "a", c.name); err == nil || !strings.Contains(err.Error(), c.want) || code != c.code {
			t.Errorf("strait trace %s: exit code %d, %v, want %d, %q", c.name, code, err, c.code, c.want)
		}
	}
	if _, code, err := traced(t, a, "b", "a"); err == nil || code != cli.ExitUnknown {
		t.Errorf("no daemon: exit code %d, %v", code, err)
	}
}

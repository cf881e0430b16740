package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/cli/connectivity"
	"strait.io/strait/install/cluster"
)

// fakeGround is a cluster with one node. It notes what is made in it.
type fakeGround struct {
	id string
	// refuses is set if it makes no pods in the nodes' network.
	refuses bool
	// ready is why no pod becomes ready.
	ready error
	// fails are the outcomes of calls that do not succeed.
	fails func(connectivity.Call) (connectivity.Stage, bool)
	asked error
	// clearing is called when a removal begins.
	clearing func()

	lock   sync.Mutex
	there  bool
	made   int
	clears int
}

func (g *fakeGround) ID(context.Context) (string, error) { return g.id, nil }

func (g *fakeGround) Image(context.Context) (string, []string, error) { return "image:1", nil, nil }

func (g *fakeGround) DaemonNodes(context.Context) ([]string, error) {
	return []string{g.id + "n1"}, nil
}

func (g *fakeGround) ServedExport(context.Context) (string, error) {
	return "multicluster.x-k8s.io/v1beta1", nil
}

func (g *fakeGround) Clear(ctx context.Context) (bool, error) {
	if g.clearing != nil {
		g.clearing()
	}
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	was := g.there
	g.there, g.clears = false, g.clears+1
	return was, nil
}

func (g *fakeGround) Make(_ context.Context, docs [][]byte) error {
	g.lock.Lock()
	defer g.lock.Unlock()
	for _, d := range docs {
		if g.refuses && strings.Contains(string(d), `"hostNetwork"`) {
			return fmt.Errorf("%w: no host pods here", cluster.ErrRefused)
		}
	}
	g.there, g.made = true, g.made+len(docs)
	return nil
}

func (g *fakeGround) WaitPods(_ context.Context, role string, _ int, _ func(string)) ([]cluster.TrialPod, error) {
	return []cluster.TrialPod{{Name: role + "-1", Node: g.id + "n1", Role: role, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}}, g.ready
}

func (g *fakeGround) Import(_ context.Context, name string) ([]netip.Addr, bool, error) {
	if strings.HasPrefix(name, "pods-") {
		return nil, true, nil
	}
	return []netip.Addr{netip.MustParseAddr("241.0.0.1")}, true, nil
}

func (g *fakeGround) Call(_ context.Context, _ string, calls []connectivity.Call) (out []connectivity.Outcome, err error) {
	if g.asked != nil {
		return nil, g.asked
	}
	for _, c := range calls {
		o := connectivity.Outcome{ID: c.ID, Stage: connectivity.Done, Tries: 1, Server: connectivity.Identity{Cluster: "a", Node: "an1", Pod: "pod-1"}}
		if g.fails != nil {
			if stage, is := g.fails(c); is {
				o = connectivity.Outcome{ID: c.ID, Stage: stage, Error: "no such host"}
			}
		}
		out = append(out, o)
	}
	return out, nil
}

func (g *fakeGround) Measure(_ context.Context, _ string, m connectivity.Measure) (connectivity.Measured, error) {
	return connectivity.Measured{DirectRates: []float64{100, 300, 200}, ThroughRates: []float64{190}, StreamBytes: 5e6, StreamSeconds: 5,
		RTTs: slices.Repeat([]float64{0.25}, m.Pings/2), MTU: 1420}, g.asked
}

func (g *fakeGround) ExportTrouble(context.Context, string) (string, error) { return "", nil }

func (g *fakeGround) Policies(context.Context) ([]string, error) { return nil, nil }

func (g *fakeGround) Zone(context.Context) (has, known bool) { return false, true }

func (g *fakeGround) Node(context.Context, string, map[string]string) connectivity.NodeFacts {
	return connectivity.NodeFacts{}
}

// TestConnectivity: whatever happens, what was made is removed, and the exit code and the text say
// what happened.
func TestConnectivity(t *testing.T) {
	for _, c := range []struct {
		name   string
		ground *fakeGround
		keep   bool
		code   int
		says   []string
	}{
		{"well", &fakeGround{}, false, 0, []string{"✓ pod addresses", "an1  pod", "✓ 12/12", "24 calls: 24 fine, 0 failed", "is removed"}},
		{"left by an earlier one", &fakeGround{there: true}, false, 0, []string{"removed what an earlier test left"}},
		{"kept", &fakeGround{}, true, 0, []string{"24 fine"}},
		{"no host pods", &fakeGround{refuses: true}, false, 0, []string{"12 calls: 12 fine", "not tested: calls from the nodes' own network", "no host pods here"}},
		{"no zone", &fakeGround{fails: func(c connectivity.Call) (connectivity.Stage, bool) {
			return connectivity.Resolve, strings.HasSuffix(c.Host, "clusterset.local.")
		}}, false, cli.ExitProblem, []string{"✗ names", "✗ 9/12", "breaks  6 calls", "strait dns setup --context ca"}},
		{"pods that cannot be asked", &fakeGround{asked: errors.New("exec is forbidden")}, false, cli.ExitUnknown, []string{"? 0/12", "exec is forbidden", "24 unknown"}},
		{"pods that do not start", &fakeGround{ready: errors.New("ImagePullBackOff")}, false, cli.ExitUnknown, []string{"is removed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.ground.id = "a"
			var out bytes.Buffer
			app := &cli.App{Stdout: &out, Stderr: &out, Now: time.Now, Output: "table", Getenv: func(string) string { return "" }}
			run := trial{a: app, f: connectivityFlags{target: target{timeout: time.Minute}, namespace: "ns", host: true, keep: c.keep}}
			err := run.run(t.Context(), map[string]ground{"ca": c.ground})
			var exit *cli.ExitError
			if code := 0; errors.As(err, &exit) && exit.Code != c.code || !errors.As(err, &exit) && code != c.code {
				t.Errorf("%v, want code %d", err, c.code)
			}
			for _, s := range c.says {
				if !strings.Contains(out.String(), s) {
					t.Errorf("does not have %q:\n%s", s, out.String())
				}
			}
			if c.ground.there != c.keep {
				t.Errorf("it is there at the end: %v", c.ground.there)
			}
		})
	}
}

// TestConnectivityPerf: what pods measure is summed up in one line for each pair.
func TestConnectivityPerf(t *testing.T) {
	var out bytes.Buffer
	app := &cli.App{Stdout: &out, Stderr: &out, Now: time.Now, Output: "table", Getenv: func(string) string { return "" }}
	run := trial{a: app, f: connectivityFlags{target: target{timeout: time.Minute}, namespace: "ns", perf: true}}
	if err := run.run(t.Context(), map[string]ground{"ca": &fakeGround{id: "a"}}); err != nil {
		t.Fatal(err)
	}
	want := "a a 200/s 190/s 0.95 8 Mbit/s 0.25 ms 0.25 ms 50.0 % 1420"
	if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
		t.Errorf("does not have %q:\n%s", want, out.String())
	}
}

// TestConnectivityInterrupted: what was made goes although the context has ended.
func TestConnectivityInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := &fakeGround{id: "a", fails: func(connectivity.Call) (connectivity.Stage, bool) { cancel(); return connectivity.Connect, true }}
	var out bytes.Buffer
	app := &cli.App{Stdout: &out, Stderr: &out, Now: time.Now, Output: "table", Getenv: func(string) string { return "" }}
	run := trial{a: app, f: connectivityFlags{target: target{timeout: time.Minute}, namespace: "ns"}}
	if err := run.run(ctx, map[string]ground{"ca": g}); !errors.Is(err, context.Canceled) || g.there {
		t.Errorf("%v, and what was made is there: %v", err, g.there)
	}
}

// TestConnectivityInterruptedEarly: the removal of what an earlier test left goes on when it has begun.
func TestConnectivityInterruptedEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := &fakeGround{id: "a", there: true, clearing: cancel}
	app := &cli.App{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Now: time.Now, Output: "table", Getenv: func(string) string { return "" }}
	run := trial{a: app, f: connectivityFlags{target: target{timeout: time.Minute}, namespace: "ns"}}
	if err := run.run(ctx, map[string]ground{"ca": g}); !errors.Is(err, context.Canceled) || g.there {
		t.Errorf("%v, and what was left is there: %v", err, g.there)
	}
}

// TestTwiceOne: two contexts that lead to one cluster are refused before anything is made.
func TestTwiceOne(t *testing.T) {
	one, two := &fakeGround{id: "a"}, &fakeGround{id: "a"}
	app := &cli.App{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Now: time.Now, Output: "table"}
	run := trial{a: app, f: connectivityFlags{target: target{timeout: time.Minute}, namespace: "ns"}}
	if err := run.run(t.Context(), map[string]ground{"c1": one, "c2": two}); err == nil || one.made+two.made+one.clears > 0 {
		t.Errorf("%v, %d objects", err, one.made+two.made)
	}
}

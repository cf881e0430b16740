package demo

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
	"strait.io/strait/install/examples"
	"strait.io/strait/internal/l4"
)

var epoch = time.Unix(1_800_000_000, 0)

// call makes a call that began at and took some milliseconds.
func call(at, took int, cluster, err string) traffic.Call {
	return traffic.Call{
		At: epoch.Add(time.Duration(at) * time.Millisecond), Micros: int64(took) * 1000,
		Hello: traffic.Hello{Cluster: cluster}, Err: err,
	}
}

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func TestTally(t *testing.T) {
	calls := []traffic.Call{
		call(0, 1, "a", ""), call(10, 3, "a", ""), call(20, 2, "b", ""),
		call(100, 50, "", "refused"), // before the window
		call(180, 50, "", "late"),    // runs into it
		call(300, 999, "", "late"),   // inside at the start
		call(401, 1, "", "late"),     // after it
	}
	for _, c := range []struct {
		name             string
		window           window
		failed, inWindow int
	}{
		{"no window", window{}, 4, 0},
		{"a window", window{at(200), at(400)}, 2, 2},
		{"an empty window", window{at(500), at(500)}, 4 - 1, 1}, // the call from 300 to 1299 was under way
	} {
		t.Run(c.name, func(t *testing.T) {
			r := tally("x", "y", calls, c.window)
			if r.Calls != 7 || r.Failures != c.failed || r.FailedInWindow != c.inWindow {
				t.Errorf("calls %d failures %d in window %d, want 7 %d %d", r.Calls, r.Failures, r.FailedInWindow, c.failed, c.inWindow)
			}
			if r.Hits["a"] != 2 || r.Hits["b"] != 1 || r.P50 != 2000 {
				t.Errorf("hits %v p50 %d, want a 2, b 1, 2000", r.Hits, r.P50)
			}
			if !strings.Contains(r.FirstError, "refused") {
				t.Errorf("first error %q, want the one before the window", r.FirstError)
			}
		})
	}
}

// No call is lost or counted twice, whatever the window.
func TestTallyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var calls []traffic.Call
		for range rapid.IntRange(0, 50).Draw(t, "calls") {
			err := rapid.SampledFrom([]string{"", "", "refused"}).Draw(t, "err")
			calls = append(calls, call(rapid.IntRange(0, 1000).Draw(t, "at"), rapid.IntRange(0, 1000).Draw(t, "took"), "a", err))
		}
		from := rapid.IntRange(0, 1000).Draw(t, "from")
		w := window{at(from), at(from + rapid.IntRange(0, 1000).Draw(t, "long"))}
		r := tally("", "", calls, w)
		if sum := r.Hits["a"] + r.Failures + r.FailedInWindow; sum != len(calls) || r.Calls != len(calls) {
			t.Errorf("%d hits + %d failures + %d in window, want %d calls", r.Hits["a"], r.Failures, r.FailedInWindow, len(calls))
		}
		if none := tally("", "", calls, window{}); none.FailedInWindow != 0 || none.Failures != r.Failures+r.FailedInWindow {
			t.Errorf("without a window %d failures and %d in it, want all %d", none.Failures, none.FailedInWindow, r.Failures+r.FailedInWindow)
		}
	})
}

func TestTotal(t *testing.T) {
	good := &Step{Number: 2, Requests: 10, Checks: []Check{{OK: true}}}
	bad := &Step{Number: 1, Requests: 5, Checks: []Check{{OK: true}, {OK: false}}}
	for _, c := range []struct {
		name  string
		steps []*Step
		ok    bool
	}{
		{"nothing was shown", nil, false},
		{"all held", []*Step{good}, true},
		{"one did not", []*Step{good, bad}, false},
		{"a call failed", []*Step{{Number: 1, Failures: 1}}, false},
	} {
		r := Result{Steps: c.steps}
		if r.total(); r.OK != c.ok {
			t.Errorf("%s: ok %v, want %v", c.name, r.OK, c.ok)
		}
	}
	r := Result{Steps: []*Step{good, bad}}
	r.total()
	if met, all := r.expectations(); r.Requests != 15 || met != 2 || all != 3 {
		t.Errorf("requests %d, %d of %d held; want 15, 2 of 3", r.Requests, met, all)
	}
}

// The story claims only what ran to its end and held.
func TestStory(t *testing.T) {
	const (
		name      = "One name and one address (241.5.251.216) answered in 3 clusters, each caller from its own cluster."
		pods      = "When a cluster's pods left, another cluster answered after 112 ms (target 300 ms)."
		machine   = "When a machine died, others answered after 3.4 s (target 6 s)."
		partition = "None of 500 calls failed while a cluster was cut off."
		daemons   = "None of 2100 calls failed when 4 daemons were killed."
		both      = "None of 2600 calls failed while a cluster was cut off and when 4 daemons were killed."
	)
	fail := func(s *Step) { s.Checks[1].OK = false }
	interrupt := func(s *Step) { s.ended = false }
	skip := func(s *Step) { s.Number = 0 }
	for _, c := range []struct {
		name       string
		spoil      func(*Step)
		step       int
		lines      []string
		shortfalls []string
	}{
		{"all held", func(*Step) {}, 1, []string{name, pods + " " + machine, both}, nil},
		{"no answer", fail, 1, []string{pods + " " + machine, both}, []string{"failed: step 1"}},
		{"no failover", fail, 2, []string{name, machine, both}, []string{"failed: step 2"}},
		{"one node per cluster", skip, 4, []string{name, pods, both}, []string{"not run: step 4"}},
		{"interrupted while a machine is dead", interrupt, 4, []string{name, pods, both}, []string{"interrupted: step 4"}},
		{"the partition cost calls", fail, 5, []string{name, pods + " " + machine, daemons}, []string{"failed: step 5"}},
		{"the restart in the cut cost calls", fail, 6, []string{name, pods + " " + machine, partition}, []string{"failed: step 6"}},
		{"a client noticed", fail, 7, []string{name, pods + " " + machine, partition}, []string{"failed: step 7"}},
		{"interrupted in the last step", interrupt, 8, []string{name, pods + " " + machine, partition}, []string{"interrupted: step 8"}},
	} {
		r := whole()
		c.spoil(r.Steps[c.step-1])
		if got := r.story(); !slices.Equal(got, c.lines) {
			t.Errorf("%s: story %q, want %q", c.name, got, c.lines)
		}
		if got := r.shortfalls(); !slices.Equal(got, c.shortfalls) {
			t.Errorf("%s: shortfalls %q, want %q", c.name, got, c.shortfalls)
		}
	}
	if got := (&Result{Clusters: 3}).story(); got != nil {
		t.Errorf("nothing ran, but the story is %q", got)
	}
}

func TestExpect(t *testing.T) {
	two, none := 2, 0
	for _, c := range []struct {
		name string
		do   func(*Step)
		want string
	}{
		{"nothing wrong", func(s *Step) { s.expectNone("the maps are as before", nil) }, "✓ the maps are as before"},
		{"two wrong", func(s *Step) { s.expectNone("the maps are as before", []string{"a lost x", "b lost x"}) },
			"✗ the maps are as before: a lost x; and 1 more; expected none"},
		{"some", func(s *Step) { s.expectSome("calls were answered", 7) }, "✓ calls were answered (7)"},
		{"not any", func(s *Step) { s.expectSome("calls were answered", 0) }, "✗ calls were answered: 0; expected more than 0"},
		{"soon", func(s *Step) { s.expectSoon("it left", 112_400*time.Microsecond, time.Second, nil) }, "✓ it left (112ms)"},
		{"late", func(s *Step) { s.expectSoon("it left", 1200*time.Millisecond, time.Second, nil) }, "✗ it left: 1.2s; expected at most 1s"},
		{"never", func(s *Step) { s.expectSoon("it left", 0, time.Second, errNever) },
			"✗ it left: did not happen in time; expected at most 1s"},
		{"no error", func(s *Step) { s.expectNoError("it ran", nil) }, "✓ it ran"},
		{"an error", func(s *Step) { s.expectNoError("it ran", errNever) }, "✗ it ran: did not happen in time; expected no error"},
		{"no failure", func(s *Step) { s.expectNoFailures() }, "✓ no call failed"},
		{"none in a window", func(s *Step) { s.FailedInWindow = &none; s.expectNoFailures() }, "✓ no call failed outside the failover"},
		{"some in a window", func(s *Step) { s.FailedInWindow = &two; s.expectNoFailures() }, "✓ no call failed outside the failover (2 during it)"},
		{"failures", func(s *Step) {
			s.Failures, s.Rows = 3, []Row{{}, {From: "a pods", Target: "x", FirstError: "15:04:05.000: refused"}}
			s.expectNoFailures()
		}, "✗ no call failed: 3 failed, one from a pods to x at 15:04:05.000: refused; expected none"},
	} {
		s := &Step{}
		c.do(s)
		if got := outcome(s.Checks[0]); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSetReady(t *testing.T) {
	top := lab.New(lab.Size{Clusters: 3, Nodes: 2})
	text := examples.Files(exampleCluster(top, top.Clusters[1]))["serve.yaml"]
	addr := netip.MustParseAddr("10.2.2.10")
	off, err := setReady(text, addr, false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(off, "      ready: true") != 1 || strings.Count(off, "      ready: false") != 1 ||
		strings.Index(off, "      ready: false") < strings.Index(off, "10.2.2.10") {
		t.Errorf("not exactly the endpoint %s is off:\n%s", addr, off)
	}
	if on, err := setReady(off, addr, true); err != nil || on != text {
		t.Errorf("back on is not the text of before (%v):\n%s", err, on)
	}
	if _, err := setReady(text, netip.MustParseAddr("10.2.2.1"), false); err == nil {
		t.Error("an address that is no endpoint: no error, though 10.2.2.10 begins with it")
	}
}

// The lab and the YAML are written by different packages and must agree on every name and address.
func TestTopologyIsTheExamples(t *testing.T) {
	top := lab.New(lab.Size{Clusters: len(lab.ClusterNames), Nodes: 3})
	for _, c := range top.Clusters {
		e := exampleCluster(top, c)
		if e.Far != (c.Name == "ap-east") {
			t.Errorf("cluster %s has far: %v", c.Name, e.Far)
		}
		for i, n := range c.Nodes {
			serve, _ := n.Pod(lab.Serve)
			if e.NodeName(i+1) != n.Name || e.Underlay(i+1) != n.Underlay.Addr() || e.PodCIDR(i+1) != n.PodCIDR ||
				e.Gateway(i+1) != n.Gateway || e.ServePod(i+1) != serve.Addr {
				t.Errorf("node %s of the lab is not node %d of the example %+v", n.Name, i+1, e)
			}
		}
	}
}

func TestCaller(t *testing.T) {
	for place, want := range map[string]string{"us-east-1/client": "us-east pods", "eu-central-12": "eu-central nodes", "x": "x nodes"} {
		if got := caller(place); got != want {
			t.Errorf("caller(%q) = %q, want %q", place, got, want)
		}
	}
}

func frontend(addr string, backends ...string) datapath.Frontend {
	a, err := l4.Parse(addr)
	if err != nil {
		panic(err)
	}
	f := datapath.Frontend{Addr: a}
	for _, b := range backends {
		f.Backends = append(f.Backends, datapath.Backend{IP: netip.MustParseAddr(b), Port: 80, Weight: 1})
	}
	return f
}

func TestWithdrawal(t *testing.T) {
	// us-west (10.2) is cut off from us-east (10.1) and eu-central (10.3).
	with := withdrawal(lab.New(lab.Size{Clusters: 3, Nodes: 2}), "us-west")
	before := []datapath.Frontend{frontend("241.0.0.1:80", "10.1.1.10", "10.2.1.10", "10.2.2.10", "10.3.1.10")}
	for _, c := range []struct {
		name, node string
		now        []datapath.Frontend
		want       string
	}{
		{"unchanged", "us-west-1", before, ""},
		{"what is beyond the cut goes", "us-west-1", []datapath.Frontend{frontend("241.0.0.1:80", "10.2.1.10", "10.2.2.10")}, ""},
		{"what is on this side goes", "us-west-1", []datapath.Frontend{frontend("241.0.0.1:80", "10.1.1.10", "10.2.1.10", "10.3.1.10")}, "withdrew 10.2.2.10:80"},
		{"the other side keeps its own", "us-east-1", []datapath.Frontend{frontend("241.0.0.1:80", "10.1.1.10", "10.3.1.10")}, ""},
		{"and not only one of them", "us-east-1", []datapath.Frontend{frontend("241.0.0.1:80", "10.1.1.10")}, "withdrew 10.3.1.10:80"},
		{"emptied", "us-east-1", []datapath.Frontend{frontend("241.0.0.1:80")}, "lost all"},
		{"gone", "us-east-1", nil, "lost all"},
	} {
		if got := with(c.node, before, c.now); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDifference(t *testing.T) {
	a, b := frontend("241.0.0.1:80", "10.1.1.10"), frontend("241.0.0.2:80", "10.3.1.30", "10.3.2.30")
	before := []datapath.Frontend{a, b}
	for _, c := range []struct {
		name string
		now  []datapath.Frontend
		want string
	}{
		{"equal", before, ""},
		{"a backend left", []datapath.Frontend{a, frontend("241.0.0.2:80", "10.3.1.30")}, "n now sends 241.0.0.2:80/TCP to 10.3.1.30:80"},
		{"emptied", []datapath.Frontend{a, frontend("241.0.0.2:80")}, "n now sends 241.0.0.2:80/TCP to no backend"},
		{"lost", []datapath.Frontend{a}, "n lost 241.0.0.2:80/TCP"},
		{"new", append(before, frontend("241.0.0.3:80", "10.1.1.1")), "n now sends 241.0.0.3:80/TCP to 10.1.1.1:80"},
	} {
		if got := difference("n", before, c.now); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

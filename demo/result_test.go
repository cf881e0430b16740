package demo

import (
	"net/netip"
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
	if held, all := r.expectations(); r.Requests != 15 || held != 2 || all != 3 || r.Steps[0] != bad {
		t.Errorf("requests %d, %d of %d held, first step %d; want 15, 2 of 3, step 1", r.Requests, held, all, r.Steps[0].Number)
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
	held := []datapath.Frontend{frontend("241.0.0.1:80", "10.1.1.10", "10.2.1.10", "10.2.2.10", "10.3.1.10")}
	for _, c := range []struct {
		name, node string
		now        []datapath.Frontend
		want       string
	}{
		{"unchanged", "us-west-1", held, ""},
		{"what is beyond the cut goes", "us-west-1", []datapath.Frontend{frontend("241.0.0.1:80", "10.2.1.10", "10.2.2.10")}, ""},
		{"what is on this side goes", "us-west-1", []datapath.Frontend{frontend("241.0.0.1:80", "10.1.1.10", "10.2.1.10", "10.3.1.10")}, "withdrew 10.2.2.10:80"},
		{"the other side keeps its own", "us-east-1", []datapath.Frontend{frontend("241.0.0.1:80", "10.1.1.10", "10.3.1.10")}, ""},
		{"and not only one of them", "us-east-1", []datapath.Frontend{frontend("241.0.0.1:80", "10.1.1.10")}, "withdrew 10.3.1.10:80"},
		{"emptied", "us-east-1", []datapath.Frontend{frontend("241.0.0.1:80")}, "lost all"},
		{"gone", "us-east-1", nil, "lost all"},
	} {
		if got := with(c.node, held, c.now); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDifference(t *testing.T) {
	a, b := frontend("241.0.0.1:80", "10.1.1.10"), frontend("241.0.0.2:80", "10.3.1.30", "10.3.2.30")
	held := []datapath.Frontend{a, b}
	for _, c := range []struct {
		name string
		now  []datapath.Frontend
		want string
	}{
		{"equal", held, ""},
		{"a backend left", []datapath.Frontend{a, frontend("241.0.0.2:80", "10.3.1.30")}, "n now sends 241.0.0.2:80/TCP to 10.3.1.30:80"},
		{"emptied", []datapath.Frontend{a, frontend("241.0.0.2:80")}, "n now sends 241.0.0.2:80/TCP to no backend"},
		{"lost", []datapath.Frontend{a}, "n lost 241.0.0.2:80/TCP"},
		{"new", append(held, frontend("241.0.0.3:80", "10.1.1.1")), "n now sends 241.0.0.3:80/TCP to 10.1.1.1:80"},
	} {
		if got := difference("n", held, c.now); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

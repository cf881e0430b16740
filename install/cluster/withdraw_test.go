package cluster

import (
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
)

// TestBarred: the daemon's configuration stays as it is, and every namespace is barred.
func TestBarred(t *testing.T) {
	const config = "cluster: c1\ngossip: {bind: 0.0.0.0:7946}\nsource: {kubernetes: {namespace: strait-system, barredNamespaces: [a]}}\n"
	first, err := barred([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cluster: c1", "bind: 0.0.0.0:7946", "namespace: strait-system", "barredNamespaces:\n    - '*'"} {
		if !strings.Contains(string(first), want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	if again, err := barred(first); err != nil || string(again) != string(first) {
		t.Errorf("again it is another, so that the daemons would restart: %v\n%s", err, again)
	}
	for _, none := range []string{"", "source: {manifest: /x}", "source: 1", "a: ["} {
		if out, err := barred([]byte(none)); (err == nil) != (none == "source: {manifest: /x}") {
			t.Errorf("%q: %v\n%s", none, err, out)
		}
	}
}

func TestHears(t *testing.T) {
	answers := []Answer{{Nodes: []api.Node{{Cluster: "a", Contact: "self"}, {Cluster: "b", Contact: "quiet"}}}, {Nodes: []api.Node{{Cluster: "c", Contact: "alive"}}}}
	for id, want := range map[string]bool{"b": false, "c": true, "d": false} {
		if got := Hears(answers, id); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// TestEnough: a cluster that was heard before the daemons restarted gets all the time, and one that was not
// gets little.
func TestEnough(t *testing.T) {
	before := []Answer{{Nodes: []api.Node{{Cluster: "heard", Contact: "alive"}, {Cluster: "left", Contact: "quiet"}}}}
	for _, tc := range []struct {
		name   string
		deaf   []string
		before []Answer
		since  time.Duration
		want   bool
	}{
		{"all hear", nil, before, 0, true},
		{"one that was heard", []string{"heard"}, before, silentTime, false},
		{"one that left, at first", []string{"left"}, before, silentTime - 1, false},
		{"one that left", []string{"left"}, before, silentTime, true},
		{"both", []string{"left", "heard"}, before, silentTime, false},
		{"it is not known who was heard", []string{"left"}, nil, silentTime, false},
	} {
		if got := enough(tc.deaf, tc.before, tc.since); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

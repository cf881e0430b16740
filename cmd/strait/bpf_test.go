package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/cli/kernel"
	"strait.io/strait/datapath/socklb/inspect"
)

// TestWhichPins: the flag, then the environment, then the daemon's word, then the default; and names of a
// daemon are for its own pins only, since another node's maps have the same frontends.
func TestWhichPins(t *testing.T) {
	view := wellView()
	view.Status.Datapath.Pins = "/pins/daemon"
	answers, _ := startServer(t, view)
	none := filepath.Join(t.TempDir(), "none.sock")
	pins := wellPins()
	here := t.TempDir()
	t.Chdir(here)
	if err := errors.Join(os.Mkdir("real", 0o700), os.Symlink("real", "link")); err != nil {
		t.Fatal(err)
	}
	linked := wellView()
	linked.Status.Datapath.Pins = filepath.Join(here, "link")
	links, _ := startServer(t, linked)
	for _, dir := range []string{"/pins/daemon", "/pins/env", "/pins/flag", filepath.Join(here, "real"), filepath.Join(here, "link")} {
		pins[dir] = pins[inspect.DefaultPins]
	}
	for _, c := range []struct {
		name, socket, env, flag, pins string
		named                         bool
	}{
		{"default", none, "", "", inspect.DefaultPins, false},
		{"daemon", answers, "", "", "/pins/daemon", true},
		{"environment", answers, "/pins/env", "", "/pins/env", false},
		{"environment without a daemon", none, "/pins/env", "", "/pins/env", false},
		{"flag", answers, "/pins/env", "/pins/flag", "/pins/flag", false},
		{"flag that says what the daemon says", answers, "/pins/env", "/pins/daemon/", "/pins/daemon", true},
		{"relative flag", links, "", "./link/", filepath.Join(here, "link"), true},
		{"relative environment", links, "real/../link", "", filepath.Join(here, "link"), true},
		{"flag that names the daemon's by another path", links, "", "real", filepath.Join(here, "real"), true},
		{"relative flag that names others", answers, "", "real", filepath.Join(here, "real"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"bpf", "services", "-o", "json"}
			if c.flag != "" {
				args = append(args, "--pins", c.flag)
			}
			e := world(args...).on(c.socket).with("STRAIT_PINS", c.env)
			e.kernel = pins.kernel()
			var got kernel.BPFAnswer[kernel.BPFService]
			if err := json.Unmarshal([]byte(e.run(t).stdout), &got); err != nil {
				t.Fatal(err)
			}
			if got.Pins != c.pins {
				t.Errorf("pins %s, want %s", got.Pins, c.pins)
			}
			if named := got.Items[0].Service == "default/serve"; named != c.named || (got.DaemonError == "") != c.named {
				t.Errorf("named %v, want %v: %+v, error %q", named, c.named, got.Items[0], got.DaemonError)
			}
		})
	}
	if n := pins[inspect.DefaultPins].open; n != 0 {
		t.Errorf("%d readers are left open", n)
	}
}

func TestOptOut(t *testing.T) {
	cgroup := fakeCgroup(t)
	pins := wellPins()
	node := pins["/pins/empty"]
	do := func(code int, message string, args ...string) string {
		t.Helper()
		e := world(append([]string{"opt-out"}, args...)...).on("/nonexistent/s").with("STRAIT_PINS", "/pins/empty")
		e.kernel = pins.kernel()
		got := e.run(t)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, message) {
			t.Errorf("%v: exit code %d, want %d and %q:\n%s%s", args, got.code, code, message, got.stdout, got.stderr)
		}
		return got.stdout
	}
	has := func(want ...string) {
		t.Helper()
		if !slices.Equal(node.byHand, want) {
			t.Errorf("opted out: %q, want %q", node.byHand, want)
		}
	}
	do(0, "dry run: cgroup "+cgroup+" would be left alone: what runs in it and below (3 processes now)", "add", cgroup, "--dry-run")
	has()
	out := do(0, "✓ cgroup "+cgroup+" is left alone", "add", cgroup+"/")
	has(cgroup)
	do(0, cgroup+"  3\n", "list")
	if out := do(0, cgroup, "list", "-o", "name"); out != cgroup+"\n" {
		t.Errorf("its names: %q", out)
	}
	if out := do(0, "is already left alone (3 processes now)", "add", cgroup); strings.Contains(out, "undo") {
		t.Errorf("nothing changed, and an undo is offered: %s", out)
	}
	do(0, "would be served again", "remove", cgroup, "--dry-run")

	_, undo, _ := strings.Cut(out, "undo  strait opt-out ")
	if want := "remove " + cgroup + " --pins /pins/empty"; strings.TrimSpace(undo) != want {
		t.Fatalf("undo %q, want %q", undo, want)
	}
	do(0, "✓ cgroup "+cgroup+" is served again", strings.Fields(undo)...)
	has()
	do(1, "is not opted out", "remove", cgroup)

	node.byHand, node.byDaemon = []string{cgroup}, []string{cgroup}
	do(1, "straitd still leaves it alone for reasons of its own", "remove", cgroup)
	node.byDaemon, node.byHand = nil, []string{"/nonexistent/gone"}
	do(0, "0 cgroups\n", "list")
	do(1, "is not a cgroup v2 directory", "remove", "/nonexistent/gone")
	node.byHand = nil

	var data kernel.OptOutChange
	if err := json.Unmarshal([]byte(do(0, "", "add", cgroup, "-o", "json")), &data); err != nil {
		t.Fatal(err)
	}
	if data.Kind != "OptOut" || data.Action != "add" || data.Cgroup != cgroup || data.Processes != 3 || data.Undo == "" {
		t.Errorf("%+v", data)
	}
}

// TestOptOutThatDoesNotStay: what is reported as done is read back.
func TestOptOutThatDoesNotStay(t *testing.T) {
	e := world("opt-out", "add", fakeCgroup(t)).on("/nonexistent/s")
	e.kernel.AddOptOut = func(string, string) error { return nil }
	if got := e.run(t); got.code != cli.ExitProblem || !strings.Contains(got.stderr, "did not stay") {
		t.Errorf("%+v", got)
	}
}

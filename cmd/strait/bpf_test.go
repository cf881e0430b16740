package main

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/l4"
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
			var got bpfAnswer[bpfService]
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

func TestMapFilter(t *testing.T) {
	all := []l4.Addr{frontend("241.7.3.9:80/TCP"), frontend("241.7.3.9:53/UDP"), frontend("241.7.3.9:53/TCP"),
		frontend("241.200.1.1:80/TCP"), frontend("[fd00::9]:80/TCP")}
	from := pinned{services: []api.Service{serve(), far(), headless()}}
	for arg, want := range map[string][]int{
		"241.7.3.9": {0, 1, 2}, "241.7.3.9:53": {1, 2}, "241.7.3.9:53/udp": {1}, "241.7.3.9/TCP": {0, 2},
		"::ffff:241.7.3.9": {0, 1, 2}, "[::ffff:241.7.3.9]:80": {0}, "fd00::9": {4}, "[fd00::9]": {4}, "[fd00::9]:80": {4},
		"fd00::9/UDP": nil, "10.0.0.1": nil, "default/serve": {0, 1}, "default/serve:dns": {1}, "default/serve:80": {0},
		"default/far": {3}, "default/peers": nil,
	} {
		f, err := parseMapFilter([]string{arg})
		if err == nil {
			f, err = f.resolve(from)
		}
		if err != nil {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		var got []int
		for i, a := range all {
			if f.matches(a) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s chooses %v, want %v", arg, got, want)
		}
	}
	if f, err := parseMapFilter(nil); err != nil || !f.matches(all[0]) {
		t.Errorf("no filter: %+v, %v", f, err)
	}
}

func FuzzParseMapFilter(f *testing.F) {
	for _, s := range []string{"default/serve:80", "241.7.3.9", "241.7.3.9:80/TCP", "[fd00::9]:80/UDP", "/", ":", "fe80::1%eth0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		filter, err := parseMapFilter([]string{arg})
		if err != nil {
			return
		}
		if (filter.service != "") == filter.ip.IsValid() {
			t.Fatalf("%q is a service or an address: %+v", arg, filter)
		}
		at := l4.Addr{IP: filter.ip, Port: filter.port, Proto: filter.proto}
		if filter.ip.IsValid() && (!filter.matches(at) || filter.matches(l4.Addr{IP: netip.MustParseAddr("192.0.2.77"), Port: 9})) &&
			filter.ip != netip.MustParseAddr("192.0.2.77") {
			t.Fatalf("%q does not choose %s alone", arg, at)
		}
	})
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

	var data optOutChange
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
	e.kernel.addOptOut = func(string, string) error { return nil }
	if got := e.run(t); got.code != exitProblem || !strings.Contains(got.stderr, "did not stay") {
		t.Errorf("%+v", got)
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"/sys/fs/cgroup/a-b.slice": "/sys/fs/cgroup/a-b.slice",
		`/x/dev-disk\x2dby.swap`: `'/x/dev-disk\x2dby.swap'`, "it's": `'it'\''s'`, "a b": "'a b'", "$(reboot)": "'$(reboot)'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%s became %s, want %s", word, got, want)
		}
	}
}

func TestWithoutEmpty(t *testing.T) {
	header, rows := withoutEmpty([]string{"A", "B", "C"}, [][]string{{"x", "–", "–"}, {"–", "–", "y"}})
	if got := strings.Join(header, " ") + strings.Join(slices.Concat(rows...), " "); got != "A Cx – – y" {
		t.Errorf("%q", got)
	}
	if header, _ := withoutEmpty([]string{"A"}, nil); len(header) != 1 {
		t.Error("a table without rows lost its header")
	}
}

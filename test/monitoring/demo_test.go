// Package monitoring scrapes the daemons of the demo with a real Prometheus, which has strait's
// alerts: asks it every query of the dashboards and of docs/metrics.md, and cuts a cluster off, to
// see alerts fire and end.
//
// Inputs are bin/, built by make, and the package prometheus; it must not know how the daemons
// count.
package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"strait.io/strait/internal/testutil"
)

// observer is the node on which Prometheus runs. Clients call from there, too.
const observer = "us-east-1"

// world is a demo that is up in the folder .demo of dir, and what was started in it.
type world struct {
	*testing.T
	dir, program string
}

// demo brings one up, with flags of strait demo up.
func demo(t *testing.T, flags ...string) world {
	t.Helper()
	testutil.NeedRoot(t)
	testutil.NeedTun(t)
	for _, name := range []string{"prometheus", "nft", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			testutil.Missing(t, "needs "+name+": run `make monitoring`, which installs it")
		}
	}
	program, err := filepath.Abs("../../bin/strait")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		testutil.Missing(t, "needs bin/strait: run `make monitoring`, which builds it")
	}
	dir, err := os.MkdirTemp("", "strait-t-") // t.TempDir can be longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, dir, program}
	down := func() {
		if out, err := w.command("demo", "down").CombinedOutput(); err != nil {
			t.Errorf("demo down: %v\n%s", err, out)
		}
		os.RemoveAll(dir)
	}
	forget := testutil.AtInterrupt(down)
	t.Cleanup(func() {
		forget()
		down()
	})
	w.strait(append([]string{"demo", "up"}, flags...)...)
	return w
}

// command is one of strait's.
func (w world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.program, args...)
	cmd.Dir = w.dir
	return cmd
}

// strait runs a command to its end, and returns its output.
func (w world) strait(args ...string) string {
	w.Helper()
	cmd := w.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("strait %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// start runs a command on a node or in a pod until the test ends.
func (w world) start(place string, args ...string) {
	w.Helper()
	cmd := w.command(append([]string{"demo", "exec", place, "--"}, args...)...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which the next line shows
		_ = cmd.Wait()
		if w.Failed() {
			w.Logf("%s printed:\n%s", strings.Join(args, " "), &output)
		}
	})
}

// daemon is the part of a daemon's configuration that says where to scrape it.
type daemon struct {
	Cluster, Node string
	Metrics       struct{ Listen string }
}

// daemons are those of the demo.
func (w world) daemons() (out []daemon) {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, ".demo", "*", "straitd.yaml"))
	if err != nil || len(files) == 0 {
		w.Fatalf("the demo has no daemons: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		var d daemon
		if err := yaml.Unmarshal(text, &d); err != nil {
			w.Fatalf("%s: %v", file, err)
		}
		out = append(out, d)
	}
	return out
}

// cut lets a cluster hear nothing but itself and scrapes, until heal.
func (w world) cut(cluster string) {
	w.Helper()
	for _, d := range w.daemons() {
		if d.Cluster != cluster {
			continue
		}
		address, _, _ := strings.Cut(d.Metrics.Listen, ":")
		network := address[:strings.LastIndex(address, ".")] + ".0/24"
		for _, rule := range []string{
			"add table inet cut",
			"add chain inet cut in { type filter hook input priority -300; }",
			"add chain inet cut out { type filter hook output priority -300; }",
			"add rule inet cut in ip saddr " + network + " accept",
			"add rule inet cut in tcp dport 9964 accept",
			"add rule inet cut in ip saddr 172.16.0.0/12 drop",
			"add rule inet cut out ip daddr " + network + " accept",
			"add rule inet cut out tcp sport 9964 accept",
			"add rule inet cut out ip daddr 172.16.0.0/12 drop",
		} {
			w.strait(append([]string{"demo", "exec", d.Node, "--", "nft"}, strings.Fields(rule)...)...)
		}
	}
}

// heal undoes cut.
func (w world) heal(cluster string) {
	w.Helper()
	for _, d := range w.daemons() {
		if d.Cluster == cluster {
			w.strait("demo", "exec", d.Node, "--", "nft", "delete", "table", "inet", "cut")
		}
	}
}

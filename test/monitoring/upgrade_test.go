package monitoring

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/demo/lab"
	"strait.io/strait/internal/testutil"
)

// beforeRelays is the last commit in which two daemons had a stream for each direction, and sent whole
// records.
const beforeRelays = "88734c8b5dc16f231fd1587698b936c8c7be15dc"

// TestRollingUpgrade: twelve daemons of an earlier version are replaced one after another, and some are set
// back in the middle, while calls go on. No call fails, and in the end each hears each, and reports no problem.
func TestRollingUpgrade(t *testing.T) {
	old := buildOld(t, beforeRelays)
	w := demo(t, "--clusters", "3", "--nodes", "4")
	l, err := lab.Open(filepath.Join(w.dir, ".demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := w.daemons()
	if len(all) != 12 {
		t.Fatalf("%d daemons", len(all))
	}
	var started sync.WaitGroup
	for _, d := range all {
		started.Go(func() { w.restart(l, d.Node, old) })
	}
	started.Wait()
	testutil.Eventually(t, wait, func() error { return w.well(l, all) })
	count := w.count(t, "us-east-1/client", "us-west-2/client", "eu-central-1/client")
	for i, d := range all {
		w.restart(l, d.Node, w.straitd())
		if i == 6 {
			for _, back := range all[2:5] {
				w.restart(l, back.Node, old)
			}
			for _, again := range all[2:5] {
				w.restart(l, again.Node, w.straitd())
			}
		}
	}
	testutil.Eventually(t, wait, func() error { return w.well(l, all) })
	calls, failed := count()
	t.Logf("%d calls", calls)
	if calls < 100 || len(failed) > 0 {
		t.Errorf("%d calls; failed: %v", calls, failed)
	}
}

// buildOld builds straitd as of a commit of this source's history.
func buildOld(t *testing.T, commit string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "straitd")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-o", program, "./cmd/straitd")
	build.Dir, build.Env = testutil.SourceAt(t, root, commit), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build straitd of %s: %v\n%s", commit, err, out)
	}
	return program
}

// well returns an error unless each daemon hears all nodes, and reports no problem.
func (w world) well(l *lab.Lab, all []daemon) error {
	for _, d := range all {
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		s, err := client.OnSocket(socket(l, d.Node)).Status(ctx)
		cancel()
		if err != nil {
			return err
		}
		for _, c := range s.Clusters {
			if c.Alive != c.Nodes || c.Nodes != 4 || c.State != api.Here && c.State != api.Joined {
				return fmt.Errorf("for %s, %d of %d nodes of %s are alive, and it is %s", d.Node, c.Alive, c.Nodes, c.Name, c.State)
			}
		}
		if problems := s.WithDatapath().Problems; len(problems) > 0 {
			return fmt.Errorf("%s reports %v", d.Node, problems)
		}
	}
	return nil
}

// count has clients call both Services again and again, until what it returns is called, which says how many calls
// there were, and which failed.
func (w world) count(t *testing.T, places ...string) (end func() (calls int, failed []string)) {
	t.Helper()
	stop := filepath.Join(t.TempDir(), "stop")
	loop := `n=0; while [ ! -e ` + stop + ` ]; do for ip in 241.5.251.216 241.154.205.107; do
		curl -s -o /dev/null --max-time 1 http://$ip || echo "$ip at $(date +%T.%N): $?"; n=$((n+1)); done; sleep 0.1; done; echo $n`
	out := make([]strings.Builder, len(places))
	var running sync.WaitGroup
	for i, place := range places {
		cmd := w.command("demo", "exec", place, "--", "sh", "-c", loop)
		cmd.Stdout, cmd.Stderr = &out[i], &out[i]
		running.Go(func() {
			if err := cmd.Run(); err != nil {
				fmt.Fprintln(&out[i], err)
			}
		})
	}
	finish := sync.OnceFunc(func() {
		if err := os.WriteFile(stop, nil, 0o600); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	t.Cleanup(finish)
	return func() (calls int, failed []string) {
		finish()
		for i, place := range places {
			for line := range strings.Lines(out[i].String()) {
				if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
					calls += n
				} else {
					failed = append(failed, place+": "+strings.TrimSpace(line))
				}
			}
		}
		return calls, failed
	}
}

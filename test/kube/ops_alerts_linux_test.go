package kube

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/alerts"
)

const (
	prometheus = "127.0.0.1:9090"
	// alertsAfter is how long an alert's condition must hold until it fires, instead of minutes: longer than a
	// daemon takes to restart.
	alertsAfter = 20 * time.Second
	// everyAddress is a setting by which a daemon can be scraped from another machine.
	everyAddress = "config.metrics.listen=0.0.0.0:9964"
)

// watchAlerts runs a Prometheus beside the clusters until the test ends, with the alerts of this source's
// chart. Daemons must have the setting everyAddress.
func (o *ops) watchAlerts(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		testutil.Missing(t, "needs prometheus: run make test-ops, which installs it")
	}
	dir := t.TempDir()
	var targets []alerts.Target
	for _, c := range o.Topology.Clusters {
		for _, n := range c.Nodes {
			targets = append(targets, alerts.Target{Address: n.Addr.String() + ":9964", Cluster: c.Name, Instance: n.Name})
		}
	}
	must(t, alerts.Write(dir, root, alertsAfter, targets))
	cmd := exec.Command("ip", append([]string{"netns", "exec", o.Name + "-fabric"}, alerts.Command(dir, prometheus)...)...)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Errorf("prometheus: %v", err)
		}
	})
	testutil.Eventually(t, within, func() error {
		var up struct{ Result []any }
		err := o.askPrometheus(t, &up, "/api/v1/query", "query=up == 1")
		if err == nil && len(up.Result) != len(targets) {
			err = fmt.Errorf("Prometheus scrapes %d daemons, want %d", len(up.Result), len(targets))
		}
		return err
	})
}

func (o *ops) askPrometheus(t *testing.T, into any, path string, parameters ...string) error {
	args := []string{"netns", "exec", o.Name + "-fabric", "curl", "-sS", "--max-time", "10", "--get"}
	for _, p := range parameters {
		args = append(args, "--data-urlencode", p)
	}
	out, err := exec.CommandContext(t.Context(), "ip", append(args, "http://"+prometheus+path)...).CombinedOutput()
	if err == nil {
		err = alerts.Decode(out, into)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return err
}

// mustNotHaveFired fails the test for each alert that fired since, besides these.
func (o *ops) mustNotHaveFired(t *testing.T, since time.Time, besides ...string) {
	t.Helper()
	var fired struct {
		Result []struct{ Metric map[string]string }
	}
	query := fmt.Sprintf(`max_over_time(ALERTS{alertstate="firing"}[%ds])`, int(time.Since(since).Seconds())+1)
	must(t, o.askPrometheus(t, &fired, "/api/v1/query", "query="+query))
	for _, f := range fired.Result {
		if slices.Contains(besides, f.Metric["alertname"]) {
			t.Logf("fired, and was true: %v", f.Metric)
		} else {
			t.Errorf("fired: %v", f.Metric)
		}
	}
}

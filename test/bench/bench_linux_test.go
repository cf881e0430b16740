package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// TestMain lets the test binary be every process of a bench.
func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestQuick runs the whole bench with few samples: everything is measured and nothing is left behind. The
// numbers mean nothing here, but those that count failures are exact.
func TestQuick(t *testing.T) {
	testutil.NeedRoot(t)
	if _, err := exec.LookPath("nft"); err != nil {
		testutil.Missing(t, "needs nft, to load kube-proxy's rules: apt-get install nftables")
	}
	file := filepath.Join(t.TempDir(), "metrics.json")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it removes what it made
	cmd.WaitDelay = 20 * time.Second
	cmd.Env = append(os.Environ(), roleEnv+"=outer", "BENCH_QUICK=1", "BENCH_DOC=", "BENCH_JSON="+file)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got struct {
		Metrics map[string]float64 `json:"metrics"`
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, g := range goals {
		if v, ok := got.Metrics[g.metric]; !ok || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Errorf("metric %s: %v, there: %v", g.metric, v, ok)
		}
	}
	for _, metric := range []string{
		"churn_failed_connects", "churn_wrong_backend", "torn_reads", "restart_failed_connects", "restart_broken",
	} {
		if v := got.Metrics[metric]; v != 0 {
			t.Errorf("%s is %v\n%s", metric, v, out)
		}
	}
	for _, metric := range []string{"churn_connects", "torn_reads_checked", "restart_connects", "restart_long_lived"} {
		if got.Metrics[metric] < 10 {
			t.Errorf("%s is %v: too few to tell", metric, got.Metrics[metric])
		}
	}
	wantNoTraces(t, cmd.Process.Pid)
}

// wantNoTraces looks for what the bench of a process makes outside of its own namespaces.
func wantNoTraces(t *testing.T, pid int) {
	t.Helper()
	mount, err := cgroupMount()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{mount, os.TempDir()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), fmt.Sprintf("%s%d-", scratchPrefix, pid)) {
				t.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
			}
		}
	}
}

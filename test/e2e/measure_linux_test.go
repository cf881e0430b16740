package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// TestMeasure: `make bench` gets the times of a fail-over and of a drain from the demo's clusterset. No call
// fails while it drains, and nothing is left behind.
func TestMeasure(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTun(t)
	bin := binaries(t)
	wantNoTraces(t, bin)
	file := filepath.Join(t.TempDir(), "measured.json")
	// Only a bench that hangs meets this limit: it also builds strait.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	bench := filepath.Join(t.TempDir(), "bench") // built first: a signal must reach it, not go
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", bench, "../bench").CombinedOutput(); err != nil {
		t.Fatalf("build test/bench: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, bench)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it removes what it made
	cmd.WaitDelay = time.Minute
	cmd.Env = append(os.Environ(), "BENCH_PHASES=demo", "BENCH_QUICK=1", "BENCH_DOC=", "BENCH_JSON="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("test/bench: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metrics map[string]float64 `json:"metrics"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	within := float64(endpointGoneWithin.Milliseconds())
	for _, name := range []string{"failover_ms", "drain_ms"} {
		if ms := got.Metrics[name]; ms <= 0 || ms > within {
			t.Errorf("%s is %v, want a number above 0 and at most %v", name, ms, within)
		}
	}
}

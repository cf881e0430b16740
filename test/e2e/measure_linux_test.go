package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

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
	if err := demo(t, bin, "measure", file, "--rounds", "1").Run(); err != nil {
		t.Fatalf("strait demo measure: %v", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Failover []float64 `json:"failover_ms"`
		Drain    []float64 `json:"drain_ms"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	within := float64(endpointGoneWithin.Milliseconds())
	for name, ms := range map[string][]float64{"failover_ms": got.Failover, "drain_ms": got.Drain} {
		if len(ms) != 1 || ms[0] <= 0 || ms[0] > within {
			t.Errorf("%s is %v, want one number above 0 and at most %v", name, ms, within)
		}
	}
	wantNoTraces(t, bin)
}

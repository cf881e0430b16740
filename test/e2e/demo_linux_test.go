// Package e2e runs the binaries as a user would, from outside: the demo with all its expectations, and
// that it leaves the machine as it found it.
//
// Input is bin/, built by make; it must not know what is inside.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

const (
	// The whole demo, build excluded.
	demoWithin = 120 * time.Second
	// What is left when the demo ends may take this long to go: the kernel removes namespaces later.
	leaveWithin = 5 * time.Second
	// The targets are 300 ms and 6 s, on an idle machine; this catches what is broken, not what is busy.
	endpointGoneWithin = 1500 * time.Millisecond
	nodeDeadWithin     = 9 * time.Second
)

// result is what `strait demo --json` writes.
type result struct {
	Requests     int        `json:"requests"`
	Failures     int        `json:"failures"`
	ClusterSetIP netip.Addr `json:"clusterSetIP"`
	Kernel       string     `json:"kernel"`
	WireGuard    string     `json:"wireguard"`
	OK           bool       `json:"ok"`
	Steps        []step     `json:"steps"`
}

type step struct {
	Number     int            `json:"number"`
	Name       string         `json:"name"`
	Hits       map[string]int `json:"hits"`
	P50        float64        `json:"p50_us"`
	FailoverMS float64        `json:"failover_ms"`
}

// binaries finds bin/ of this checkout.
func binaries(t *testing.T) string {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "strait")); err != nil {
		testutil.Missing(t, "needs bin/strait: run `make e2e`, which builds it")
	}
	return bin
}

// demoFolder is where the demo keeps what it makes: in the folder that it is started in.
func demoFolder(bin string) string { return filepath.Join(filepath.Dir(bin), ".demo") }

// demo prepares `strait demo` with arguments; its output is shown if the test fails.
func demo(t *testing.T, bin string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*demoWithin)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "strait"), append([]string{"demo"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it tears down
	cmd.WaitDelay = time.Minute
	cmd.Dir = filepath.Dir(demoFolder(bin))
	// An interrupted demo takes itself down, one that was kept does not. While it still runs, "down" is refused.
	t.Cleanup(testutil.AtInterrupt(func() {
		for range 60 {
			down := exec.Command(filepath.Join(bin, "strait"), "demo", "down")
			down.Dir = cmd.Dir
			if down.Run() == nil {
				return
			}
			time.Sleep(time.Second)
		}
	}))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(cmd.Args, " "), &out)
		}
	})
	return cmd
}

func TestDemo(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTun(t)
	bin := binaries(t)
	wantNoTraces(t, bin)

	file := filepath.Join(t.TempDir(), "demo.json")
	start := time.Now()
	if err := demo(t, bin, "--json", file).Run(); err != nil {
		t.Errorf("strait demo: %v", err)
	}
	if took := time.Since(start); took > demoWithin {
		t.Errorf("took %v, want at most %v", took, demoWithin)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	t.Logf("%s", text)
	checkResult(t, got)
}

// checkResult holds the demo's own count against what it promises.
func checkResult(t *testing.T, got result) {
	t.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if kernel := strings.TrimSpace(string(release)); got.Kernel != kernel {
		t.Errorf("kernel %q, want %q", got.Kernel, kernel)
	}
	if got.WireGuard != "kernel" && got.WireGuard != "userspace" {
		t.Errorf("wireguard %q, want kernel or userspace", got.WireGuard)
	}
	if !netip.MustParsePrefix("241.0.0.0/8").Contains(got.ClusterSetIP) {
		t.Errorf("clusterSetIP %v is not in 241.0.0.0/8", got.ClusterSetIP)
	}
	if got.Failures != 0 || got.Requests < 1000 {
		t.Errorf("%d failures in %d requests, want none in 1000 or more", got.Failures, got.Requests)
	}
	if !got.OK {
		t.Error("an expectation did not hold; see checks in the JSON")
	}
	seen := map[int]step{}
	for i, s := range got.Steps {
		if s.Number != i+1 {
			t.Errorf("step %q has number %d, but comes as number %d", s.Name, s.Number, i+1)
		}
		seen[s.Number] = s
		hits := 0
		for _, n := range s.Hits {
			hits += n
		}
		if hits == 0 || s.P50 <= 0 {
			t.Errorf("step %q: %d hits, p50 %v µs: nothing was measured", s.Name, hits, s.P50)
		}
	}
	for number := 1; number <= 8; number++ {
		if _, ok := seen[number]; !ok {
			t.Errorf("step %d is missing", number)
		}
	}
	wantFailover(t, seen[2], endpointGoneWithin)
	wantFailover(t, seen[4], nodeDeadWithin)
}

func wantFailover(t *testing.T, s step, within time.Duration) {
	t.Helper()
	took := time.Duration(s.FailoverMS * float64(time.Millisecond))
	if took <= 0 || took > within {
		t.Errorf("step %q: failover took %v, want more than 0 and at most %v", s.Name, took, within)
	}
}

// TestDemoInterrupted presses Ctrl-C while the lab is being built and while traffic flows.
func TestDemoInterrupted(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTun(t)
	bin := binaries(t)
	for _, after := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 15 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			wantNoTraces(t, bin)
			cmd := demo(t, bin)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatalf("it ended before Ctrl-C: %v", err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("an interrupted demo has not held its expectations, and must not exit with 0")
			}
		})
	}
}

// orNil is an error that lists what should not be.
func orNil(left []string) error {
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
}

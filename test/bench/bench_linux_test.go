package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/bench/ipvs"
)

// TestMain lets the test binary be every process of a bench.
func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestReplication: the phase replication measures all that its table has.
func TestReplication(t *testing.T) {
	testutil.NeedRoot(t)
	metrics, out := quick(t, "BENCH_PHASES="+phaseReplication)
	for _, g := range replicationGoals {
		if v, ok := metrics[g.metric]; !ok || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Errorf("metric %s: %v, there: %v", g.metric, v, ok)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestQuick runs the bench with few samples: everything is measured and nothing is left behind. The
// numbers mean nothing here, but those that count failures are exact. The machine has one demo at a
// time, so test/e2e runs that of the phase demo; and test/redteam runs the attack. TestCilium runs
// the phase cilium.
func TestQuick(t *testing.T) {
	testutil.NeedRoot(t)
	if _, err := exec.LookPath("nft"); err != nil {
		testutil.Missing(t, "needs nft, to load kube-proxy's rules: apt-get install nftables")
	}
	own := strings.Split(phaseNames(), ",")
	own = slices.DeleteFunc(own, func(p string) bool { return slices.Contains(outerPhases, p) || p == phaseCilium })
	metrics, out := quick(t, "BENCH_PHASES="+strings.Join(own, ","))
	without := ""
	if ipvs.Available() != nil {
		without = ipvsMetric + "_"
	}
	for _, g := range goals {
		v, ok := metrics[g.metric]
		if slices.Contains(demoMetrics, g.metric) || slices.Contains(attackMetrics, g.metric) {
			continue
		}
		if without != "" && strings.HasPrefix(g.metric, without) {
			if ok {
				t.Errorf("metric %s is %v, but the kernel has no IPVS", g.metric, v)
			}
		} else if !ok || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && !strings.HasPrefix(g.metric, "weights_more_") { // a difference
			t.Errorf("metric %s: %v, there: %v", g.metric, v, ok)
		}
	}
	for _, metric := range []string{
		"churn_failed_connects", "churn_wrong_backend", "torn_reads", "restart_failed_connects", "restart_broken",
	} {
		if v := metrics[metric]; v != 0 {
			t.Errorf("%s is %v\n%s", metric, v, out)
		}
	}
	for _, metric := range []string{
		"churn_connects", "torn_reads_checked", "restart_connects", "restart_long_lived",
	} {
		if metrics[metric] < 10 {
			t.Errorf("%s is %v: too few to tell", metric, metrics[metric])
		}
	}
}

// TestIPVS: kube-proxy's IPVS services are measured where the kernel has IPVS. Elsewhere the report
// says why they are not. It needs no tools, so it also runs in a VM.
func TestIPVS(t *testing.T) {
	testutil.NeedRoot(t)
	metrics, out := quick(t, "BENCH_PHASES=ipvs")
	if why := ipvs.Available(); why != nil {
		if len(metrics) > 0 || !strings.Contains(string(out), why.Error()) {
			t.Errorf("metrics %v, and the report does not say %q:\n%s", metrics, why, out)
		}
		return
	}
	t.Logf("%s", out)
	for _, metric := range []string{"ipvs_connect_ratio", "ipvs_rr_ratio", "ipvs_strait_connect_ratio", "ipvs_load_s"} {
		if metrics[metric] <= 0 {
			t.Errorf("%s is %v", metric, metrics[metric])
		}
	}
}

// TestCilium: Cilium's own balancer is measured where its module and clang can be had. Elsewhere the
// report says what is lacking.
func TestCilium(t *testing.T) {
	testutil.NeedRoot(t)
	if _, err := exec.LookPath("nft"); err != nil {
		testutil.Missing(t, "needs nft, to load kube-proxy's rules: apt-get install nftables")
	}
	metrics, out := quick(t, "BENCH_PHASES="+phaseCilium)
	if len(metrics) == 0 {
		_, why, ok := strings.Cut(string(out), "Not measured: `"+ciliumPrefix+"…`, because ")
		if !ok {
			t.Fatalf("no metrics, and no reason:\n%s", out)
		}
		t.Skip(why)
	}
	for _, metric := range []string{"strait_churn_failed_connects", "strait_churn_wrong_backend", "strait_torn_reads", "strait_torn_refused"} {
		if v, ok := metrics[ciliumPrefix+metric]; !ok || v != 0 {
			t.Errorf("%s is %v, there: %v\n%s", metric, v, ok, out)
		}
	}
	for _, metric := range []string{"churn_connects", "torn_reads_checked", "strait_churn_connects", "strait_torn_reads_checked"} {
		if metrics[ciliumPrefix+metric] < 10 {
			t.Errorf("%s is %v: too few to tell", metric, metrics[ciliumPrefix+metric])
		}
	}
}

// TestCiliumMissing: without a network, and without the module, the bench says so and goes on.
func TestCiliumMissing(t *testing.T) {
	testutil.NeedRoot(t)
	if _, err := exec.LookPath("nft"); err != nil {
		testutil.Missing(t, "needs nft, which the phase looks for first: apt-get install nftables")
	}
	metrics, out := quick(t, "BENCH_PHASES="+phaseCilium, "GOPROXY=off", "GOMODCACHE="+t.TempDir())
	if len(metrics) > 0 || !strings.Contains(string(out), "Not measured: `cilium_…`, because ") {
		t.Errorf("metrics %v, and the report gives no reason:\n%s", metrics, out)
	}
}

// quick runs a bench with few samples, and checks that it leaves nothing behind.
func quick(t *testing.T, env ...string) (metrics map[string]float64, out []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "metrics.json")
	// Only a bench that hangs meets a limit: how long the rest takes depends on what runs beside it.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it removes what it made
	cmd.WaitDelay = 20 * time.Second
	cmd.Env = append(append(os.Environ(), roleEnv+"=outer", "BENCH_QUICK=1", "BENCH_DOC=", "BENCH_JSON="+file), env...)
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
	wantNoTraces(t, cmd.Process.Pid)
	return got.Metrics, out
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

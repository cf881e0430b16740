package main

import (
	"strings"
	"testing"

	"strait.io/strait/test/bench/stats"
)

// TestAddRounds: a phase of another program has the median of the rounds, and misses no metric silently.
func TestAddRounds(t *testing.T) {
	r := result{Metrics: map[string]summary{}}
	if err := r.addRounds(map[string][]float64{"failover_ms": {30, 50, 40}, "drain_ms": {70}}, demoMetrics); err != nil {
		t.Fatal(err)
	}
	if f, d := r.Metrics["failover_ms"], r.Metrics["drain_ms"]; f.Median != 40 || f.N != 3 || d.Median != 70 {
		t.Errorf("got %+v", r.Metrics)
	}
	for _, bad := range []map[string][]float64{nil, {"failover_ms": {30}, "drain_ms": {}}, {"drain_ms": {30}}} {
		if err := r.addRounds(bad, demoMetrics); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

// TestMeasured: a quick run lacks nothing because it leaves out the attack.
func TestMeasured(t *testing.T) {
	all, quick := options{}.measured(), options{Quick: true}.measured()
	if len(all) != len(metricsOf(goals)) || len(quick) != len(all)-len(attackMetrics) {
		t.Errorf("%d metrics of %d, %d of a quick run", len(all), len(metricsOf(goals)), len(quick))
	}
}

func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		g    goal
		v    float64
		want string
	}{
		{goal{most: value(1.05)}, 1.05, "≤ 1.05"},
		{goal{most: value(1.05)}, 1.06, "**missed** (≤ 1.05)"},
		{goal{least: value(0.99)}, 1.2, "≥ 0.99"},
		{goal{least: value(0.99)}, 0.98, "**missed** (≥ 0.99)"},
		{goal{most: value(0)}, 0, "0"},
		{goal{most: value(0)}, 1, "**missed** (≤ 0)"},
		{goal{}, 7, "–"},
	} {
		if got := tc.g.verdict(tc.v); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.v, got, tc.want)
		}
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 56: "56", 1.0514: "1.051", 326.43: "326.4", 14409.2: "14409"} {
		if got := figure(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	r := result{Metrics: map[string]summary{}}
	for _, g := range goals {
		r.Metrics[g.metric] = summary(stats.Exactly(1))
	}
	if lack := r.missing(metricsOf(goals)); len(lack) > 0 {
		t.Errorf("missing %v of a whole run", lack)
	}
	delete(r.Metrics, "ipvs_rr_ratio")
	r.Skipped = map[string]string{"ipvs_": "the kernel has no IPVS"}
	if lack := r.missing(metricsOf(goals)); len(lack) > 0 {
		t.Errorf("missing %v, which the result gives a reason for", lack)
	}
	delete(r.Metrics, "torn_reads")
	if lack := r.missing(metricsOf(goals)); len(lack) != 1 || lack[0] != "torn_reads" {
		t.Errorf("missing %v, want torn_reads", lack)
	}
}

func TestTable(t *testing.T) {
	r := result{Metrics: map[string]summary{
		"tcp_connect_ratio": {Median: 1.01, Q1: 1.005, Q3: 1.02, N: 40}, "extra_ns": {Median: 5, Q1: 5, Q3: 5, N: 1},
	}}
	r.Skipped = map[string]string{"ipvs_": "the kernel has no IPVS"}
	var b strings.Builder
	if err := r.write(&b, goals); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| `tcp_connect_ratio` | 1.010 | 1.005 … 1.020 (40) | ≤ 1.05 |", "| `extra_ns` | 5 | – |", "Not measured: `ipvs_…`, because the kernel has no IPVS."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, &b)
		}
	}
}

func TestSplice(t *testing.T) {
	page := "before\n" + docMarks.begin + "old\n" + docMarks.end + "after\n"
	got, err := splice(page, "new\n", docMarks)
	if want := "before\n" + docMarks.begin + "new\n" + docMarks.end + "after\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := splice("no marks", "new\n", docMarks); err == nil {
		t.Error("a page without marks was taken")
	}
}

// TestCiliumTables: each side has its column, what was not measured of it a dash, and the rest comes
// below.
func TestCiliumTables(t *testing.T) {
	r := result{Metrics: map[string]summary{
		"cilium_connect_ratio":                  {Median: 1.1, Q1: 1.09, Q3: 1.11, N: 40},
		"cilium_strait_connect_ratio":           {Median: 1.03, Q1: 1.02, Q3: 1.04, N: 40},
		"cilium_churn_failed_connects":          {Median: 999, Q1: 999, Q3: 999, N: 1},
		"cilium_graceful_churn_failed_connects": {Median: 0, N: 1},
		"cilium_connect_direct_ns":              {Median: 5, Q1: 5, Q3: 5, N: 1},
		"tcp_connect_ratio":                     {Median: 1.01, N: 1},
	}}
	var b strings.Builder
	if err := r.part(ciliumPrefix, true).writeCilium(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `connect()`, hot ÷ direct | – | 1.030 (1.020 … 1.040) | 1.100 (1.090 … 1.110) | – | – |\n",
		"| churn: connects that failed | – | 999 | 0 | – |\n",
		"| `cilium_connect_direct_ns` | 5 | – |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "tcp_connect_ratio") || len(r.part(ciliumPrefix, false).Metrics) != 1 {
		t.Errorf("the parts overlap:\n%s", &b)
	}
	if lack := r.missing(ciliumMetrics()); len(lack) == 0 {
		t.Error("nothing is missing of a run with four metrics")
	}
	r = result{Skipped: map[string]string{"cilium_": "there is no clang-19"}}
	b.Reset()
	if err := r.writeCilium(&b); err != nil || b.String() != "\nNot measured: `cilium_…`, because there is no clang-19.\n" {
		t.Errorf("%v\n%s", err, &b)
	}
	if lack := r.missing(ciliumMetrics()); len(lack) > 0 {
		t.Errorf("missing %v, which the result gives a reason for", lack)
	}
}

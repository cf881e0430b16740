package chart_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"strait.io/strait/internal/testutil"
)

const (
	alertsFile = "strait/monitoring/alerts.yaml"
	alertTests = "testdata/alerts.yaml"
)

// alert is a rule of Prometheus.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type ruleFile struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	} `json:"groups"`
}

// alerts are those of the chart.
func alerts(t *testing.T) ruleFile {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var f ruleFile
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		t.Fatalf("%s: %v", alertsFile, err)
	}
	if len(f.Groups) != 1 || len(f.Groups[0].Rules) == 0 {
		t.Fatalf("%s: want one group with rules", alertsFile)
	}
	return f
}

// promtool runs Prometheus's own checker.
func promtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		testutil.Missing(t, "needs promtool, of the package prometheus: run `make setup` as root")
	}
	out, err := exec.Command("promtool", args...).CombinedOutput()
	return string(out), err
}

// TestAlerts: Prometheus takes the rules, and each alert fires on what is bad, and on nothing else.
func TestAlerts(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", alertTests}} {
		if out, err := promtool(t, args...); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestAlertsAreTested: the tests notice of each alert when it never fires, when it always does, and
// when it does not wait.
func TestAlertsAreTested(t *testing.T) {
	t.Parallel()
	tests, err := os.ReadFile(alertTests)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*alert){
		"never fires":      func(a *alert) { a.Expr = "(" + a.Expr + ") and on () vector(0) > 1" },
		"fires when not":   func(a *alert) { a.Expr = "vector(1)" },
		"fires right away": func(a *alert) { a.For = "0s" },
	} {
		rules := alerts(t)
		for i := range rules.Groups[0].Rules {
			change(&rules.Groups[0].Rules[i])
		}
		out, _ := promtool(t, "test", "rules", write(t, rules, tests)) // what failed is in its output
		for _, a := range rules.Groups[0].Rules {
			if !strings.Contains(out, fmt.Sprintf("alertname=%q", a.Alert)) {
				t.Errorf("%s: the alert %s, and %s has no test that fails\n%s", a.Alert, what, alertTests, out)
			}
		}
	}
}

// write puts rules and their tests into a folder, and returns the file of the tests.
func write(t *testing.T, rules ruleFile, tests []byte) string {
	t.Helper()
	dir := t.TempDir()
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tests.yaml")
	tests = []byte(strings.Replace(string(tests), "../"+alertsFile, "rules.yaml", 1))
	for name, data := range map[string][]byte{filepath.Join(dir, "rules.yaml"): text, file: tests} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// TestAlertsPage: docs/metrics.md has a row for each alert, with its severity and its time. The
// metrics that they use have rows there too, and the codes that they name have sections.
func TestAlertsPage(t *testing.T) {
	page, problems := doc(t, "metrics.md"), doc(t, "problems.md")
	var rows []string
	for _, r := range regexp.MustCompile("(?m)^\\| `(Strait\\w+)` \\| (\\w+) \\| (\\w+) \\|").FindAllStringSubmatch(page, -1) {
		rows = append(rows, strings.Join(r[1:], " "))
	}
	var want []string
	for _, a := range alerts(t).Groups[0].Rules {
		want = append(want, fmt.Sprint(a.Alert, " ", a.Labels["severity"], " ", a.For))
		if !slices.Contains([]string{"critical", "warning"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		}
		for _, annotation := range []string{"summary", "description", "runbook"} {
			if a.Annotations[annotation] == "" {
				t.Errorf("%s: has no annotation %s", a.Alert, annotation)
			}
		}
		for _, metric := range regexp.MustCompile(`strait_\w+`).FindAllString(a.Expr, -1) {
			if !strings.Contains(page, "| `"+metric+"` |") {
				t.Errorf("%s: docs/metrics.md has no %s", a.Alert, metric)
			}
		}
		for _, code := range regexp.MustCompile(`STR\d+`).FindAllString(a.Annotations["runbook"], -1) {
			if !strings.Contains(problems, "### "+code+":") {
				t.Errorf("%s: docs/problems.md has no %s", a.Alert, code)
			}
		}
	}
	if !slices.Equal(rows, want) {
		t.Errorf("docs/metrics.md has the alerts\n%s\nwant, as in %s,\n%s", strings.Join(rows, "\n"), alertsFile, strings.Join(want, "\n"))
	}
}

// doc reads a page.
func doc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api/fake"
)

// TestMetricsPage: docs/metrics.md has a row for each metric with its type and its labels, and
// mentions no other.
func TestMetricsPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	m := New(Build{})
	from(m, fake.NewSource(fake.Sample()))
	m.Observe("socklb", time.Millisecond, nil)
	m.Propagated("east", time.Millisecond)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]string{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "strait_") {
			continue
		}
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		slices.Sort(labels)
		served[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ", ")
	}
	rows := map[string]string{}
	for _, r := range regexp.MustCompile("(?m)^\\| `(strait_\\w+)` \\| (\\w+) \\| ([^|]*)\\|").FindAllStringSubmatch(string(b), -1) {
		labels := strings.Split(strings.TrimSpace(r[3]), ", ")
		slices.Sort(labels)
		rows[r[1]] = r[2] + " " + strings.Join(labels, ", ")
	}
	for name, is := range served {
		if rows[name] != is {
			t.Errorf("docs/metrics.md has %s: %q, the daemon serves %q", name, rows[name], is)
		}
	}
	for name := range rows {
		if served[name] == "" {
			t.Errorf("docs/metrics.md has a row for %s, which the daemon does not serve", name)
		}
	}
	for _, name := range regexp.MustCompile(`strait_\w+`).FindAllString(string(b), -1) {
		if served[strings.TrimSuffix(name, "_bucket")] == "" {
			t.Errorf("docs/metrics.md mentions %s, which the daemon does not serve", name)
		}
	}
}

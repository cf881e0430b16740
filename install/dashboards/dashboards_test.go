package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommitted: the dashboards of the chart are what their tables build to.
func TestCommitted(t *testing.T) {
	built, err := files()
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range committed {
		if built[f.Name()] == nil {
			t.Errorf("%s is built from nothing: remove it", f.Name())
		}
	}
	for name, want := range built {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from what install/dashboards builds: run 'go generate ./install/dashboards' and commit the result", name)
		}
	}
}

// TestPanels: panels fill whole lines, their names differ, their queries follow the reader's
// choices, and use metrics that docs/metrics.md has.
func TestPanels(t *testing.T) {
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`strait_\w+`)
	for _, p := range []page{clusterset, node} {
		seen := map[string]bool{}
		for _, r := range p.rows {
			width := uint32(0)
			for _, panel := range r.panels {
				width += panel.width
				if seen[panel.title] {
					t.Errorf("%s: two panels are called %s", p.name, panel.title)
				}
				seen[panel.title] = true
				if len(panel.queries) == 0 {
					t.Errorf("%s: %s asks nothing", p.name, panel.title)
				}
				for _, q := range panel.queries {
					if !strings.Contains(q.expr, "{@") {
						t.Errorf("%s: %s does not follow the reader's choice: %s", p.name, panel.title, q.expr)
					}
					for _, name := range metric.FindAllString(q.expr, -1) {
						if !strings.Contains(string(doc), "| `"+strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")+"` |") {
							t.Errorf("%s: %s: docs/metrics.md has no %s", p.name, panel.title, name)
						}
					}
				}
			}
			if width%24 != 0 {
				t.Errorf("%s: the panels of %s are %d wide, want a multiple of 24", p.name, r.title, width)
			}
		}
	}
}

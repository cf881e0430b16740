package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var inBackticks = regexp.MustCompile("`([^`]+)`")

// TestPurePage: what ARCHITECTURE.md calls pure is held to that by the table, and what the table
// holds to it is called pure there. Of a line about several packages, that is checked of the first
// one, which the text begins with.
func TestPurePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.SplitN(line, "|", 4)
		if len(cells) < 4 {
			continue
		}
		name := inBackticks.FindStringSubmatch(cells[1])
		if name == nil {
			continue
		}
		p, ok := row(name[1])
		if !ok || p.Path != name[1] {
			continue
		}
		if called := strings.HasPrefix(strings.TrimSpace(cells[2]), "pure:"); called != p.Pure {
			t.Errorf("%s: ARCHITECTURE.md calls it pure: %v; test/arch/table.go: %v", p.Path, called, p.Pure)
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("only %d packages were found in the tables of ARCHITECTURE.md", checked)
	}
}

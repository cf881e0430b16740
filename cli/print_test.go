package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestWithoutEmpty(t *testing.T) {
	header, rows := WithoutEmpty([]string{"A", "B", "C"}, [][]string{{"x", "–", "–"}, {"–", "–", "y"}})
	if got := strings.Join(header, " ") + strings.Join(slices.Concat(rows...), " "); got != "A Cx – – y" {
		t.Errorf("%q", got)
	}
	if header, _ := WithoutEmpty([]string{"A"}, nil); len(header) != 1 {
		t.Error("a table without rows lost its header")
	}
}

func TestTableAligns(t *testing.T) {
	var b strings.Builder
	Printer{W: &b}.Table([]string{"A", "B", "C"}, [][]string{{"–", "✓ yes", "x"}, {"long cell", "", "y"}, {"z", "", ""}})
	want := "A          B      C\n–          ✓ yes  x\nlong cell         y\nz\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestSpellReplacesWhatASCIIHasNot(t *testing.T) {
	for text, want := range map[string]string{"✓ zoné – a · b": "ok zon? - a - b", "! x": "warn x", "what!": "what!", "✗ y": "FAIL y"} {
		if got := (Printer{ASCII: true}).spell(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

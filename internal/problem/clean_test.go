package problem_test

import (
	"strings"
	"testing"
	"unicode"

	"strait.io/strait/internal/problem"
)

// TestClean: what others wrote into a Problem reaches neither the terminal as commands, nor a second line, nor
// is it longer than a screen.
func TestClean(t *testing.T) {
	evil := "a\x1b[2J\x1b]0;title\x07b\r\nFAKE\u202edcba\u2028\x9b\x00\xff" + strings.Repeat("x", 1<<20)
	p := problem.Problem{Code: "STR2314", Object: "node " + evil, Field: evil, File: evil, Message: evil, Try: evil, Warning: true}
	for where, got := range map[string]problem.Problem{"Clean": p.Clean(), "Sort": problem.Sort([]problem.Problem{p})[0]} {
		text := got.String()
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' }); i >= 0 {
			t.Errorf("%s: %q", where, text[i:min(i+20, len(text))])
		}
		if len(text) > 32<<10 {
			t.Errorf("%s: %d bytes", where, len(text))
		}
		if got.Code != p.Code || !got.Warning {
			t.Errorf("%s changed more than texts: %v", where, got.Code)
		}
	}
	plain := problem.Problem{Object: "node é/n1", Message: "joined\nerrors → two"}
	if got := plain.Clean().String(); got != "node é/n1: joined errors → two" {
		t.Errorf("%q", got)
	}
}

package main

import (
	"errors"
	"strings"
	"testing"
)

// TestNeedsNode: a command that reads the kernel says on another system what it needs and where to run it, and
// exits with 3, since the answer is unknown.
func TestNeedsNode(t *testing.T) {
	e := world("bpf", "services")
	e.kernel.open = func(string) (pinnedMaps, error) { return nil, needsNode("strait bpf", "darwin") }
	var stderr strings.Builder
	e.stderr = &stderr
	if code := run(t.Context(), e); code != exitUnknown {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"strait bpf needs a Linux node", "darwin", "kubectl -n strait-system exec ds/strait -- /strait bpf"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr lacks %q:\n%s", want, &stderr)
		}
	}
	if err := pinsError("/p", errors.New("broken")); !strings.Contains(err.Error(), "broken") {
		t.Errorf("another error became %v", err)
	}
}

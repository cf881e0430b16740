package main

import (
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/cli/kernel"
)

// TestNeedsNode: a command that reads the kernel says on another system what it needs and where to run it, and
// exits with 3, since the answer is unknown.
func TestNeedsNode(t *testing.T) {
	e := world("bpf", "services")
	e.kernel.Open = func(string) (kernel.PinnedMaps, error) { return nil, cli.NeedsNode("strait bpf", "darwin") }
	var stderr strings.Builder
	e.Stderr = &stderr
	if code := run(t.Context(), e); code != cli.ExitUnknown {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"strait bpf needs a Linux node", "darwin", "kubectl -n strait-system exec ds/strait -- /strait bpf"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr lacks %q:\n%s", want, &stderr)
		}
	}
}

package fabric

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// TestNamedBesideOthers: another program's first `ip netns add` does not cover our namespaces.
func TestNamedBesideOthers(t *testing.T) {
	if !testutil.Inside(t, 0) {
		return
	}
	// A machine on which nobody has made a named namespace yet, for this process alone.
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := AddNS("ours"); err != nil {
		t.Fatal(err)
	}
	ip := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	ip("netns", "add", "theirs")
	if out := ip("netns", "exec", "ours", "ip", "link", "show", "lo"); !strings.Contains(out, "UP") {
		t.Errorf("our namespace has %s", out)
	}
	if out := ip("netns", "exec", "ours", "cat", "/proc/sys/net/ipv4/ip_local_reserved_ports"); out != "51820\n" {
		t.Errorf("our namespace reserves %q, want WireGuard's port", out)
	}
	if err := RemoveNS("ours"); err != nil {
		t.Error(err)
	}
	if out := ip("netns", "list"); strings.Contains(out, "ours") || !strings.Contains(out, "theirs") {
		t.Errorf("left: %s", out)
	}
}

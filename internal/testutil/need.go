// Package testutil gives tests what they need from the machine: a network namespace, a cgroup, a
// bpffs, a logger. It reports when the machine cannot provide it.
//
// Only tests import it. Everything that it makes is undone when the test ends. Of strait's own
// packages it must know only notify, so that all others can use it.
package testutil

import (
	"os"
	"testing"
)

// Missing ends a test that this machine cannot run. In CI (environment CI=true) that is a failure:
// our CI machines have everything that tests need, and a skip there would hide a broken test.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("cannot run here, and in CI every test must run: %s", reason)
		return // for a TB whose Fatalf returns
	}
	t.Skip(reason)
}

// Rounds returns how often a test repeats its work: full, or short under -short, as on an emulated
// processor.
func Rounds(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// NeedRoot skips a test that loads eBPF, makes namespaces or mounts, unless it runs as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "needs root: run `sudo make test`")
	}
}

// NeedTun skips a test of the userspace tunnel if there is no TUN device.
func NeedTun(t testing.TB) {
	t.Helper()
	NeedRoot(t)
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		Missing(t, "needs a TUN device: "+err.Error())
		return
	}
	_ = f.Close() // opened only to see whether it can be
}

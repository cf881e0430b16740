// Package testutil gives tests what they need of the machine: a network namespace, a cgroup, a bpffs, a
// logger; and says so when the machine cannot give it.
//
// Imported by tests only. Everything that it makes is undone when the test ends. It must not know
// strait's own packages, so that each of them may use it.
package testutil

import (
	"os"
	"testing"
)

// Missing ends a test that this machine cannot run. In CI (environment CI=true) that is a failure: a
// machine of ours has all that tests need, and a skip there would hide a broken test.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("cannot run here, and in CI every test must run: %s", reason)
		return // for a TB whose Fatalf comes back
	}
	t.Skip(reason)
}

// Rounds is how often a test repeats what it repeats: full, or short under -short, as on an emulated processor.
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

// NeedTun skips a test of the userspace tunnel where there is no TUN device.
func NeedTun(t testing.TB) {
	t.Helper()
	NeedRoot(t)
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		Missing(t, "needs a TUN device: "+err.Error())
		return
	}
	_ = f.Close() // opened only to see that it can be
}

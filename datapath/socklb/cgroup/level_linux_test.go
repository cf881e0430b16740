package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// TestOwnLevels: what the kernel shows of this process' cgroups is what the whole tree shows, and is enough to find
// the depth of others.
func TestOwnLevels(t *testing.T) {
	if !testutil.Inside(t, 0) {
		return
	}
	whole, err := OpenTree()
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	pod := filepath.Join(testutil.InsideCgroup(), "level", "pod")
	if err := os.MkdirAll(pod, 0o755); err != nil {
		t.Fatal(err)
	}
	id, want, err := whole.Find(pod)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("kernel", func(t *testing.T) {
		levels, err := ownLevels()
		if errors.Is(err, errNoAncestors) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		delete(levels, RootID) // as where it cannot be seen
		part := Tree{levels: levels}
		if gotID, got, err := part.Find(pod); err != nil || gotID != id || got != want || got < 3 {
			t.Errorf("without the root, %s is cgroup %d, %d deep (%v); want %d, %d", pod, gotID, got, err, id, want)
		}
		if got, err := part.Paths(map[uint64]bool{id: true, 1 << 60: true}); err != nil || len(got) != 1 || !sameFile(t, got[0], pod) {
			t.Errorf("cgroup %d is found at %q (%v), want %s", id, got, err, pod)
		}
	})
	var part Tree
	if _, _, err := part.Find(pod); err == nil || !strings.Contains(err.Error(), "its depth is unknown") {
		t.Errorf("with no cgroup known: %v", err)
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := inode(a)
	if err != nil {
		t.Error(err)
	}
	y, err := inode(b)
	if err != nil {
		t.Error(err)
	}
	return x == y
}

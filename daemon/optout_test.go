package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"strait.io/strait/internal/notify"
)

func TestPodCgroups(t *testing.T) {
	root := t.TempDir()
	uid, other := "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	for _, d := range []string{
		"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f8fad5b_d9cb_469f_a165_70867728950e.slice/cri-containerd-1.scope",
		"kubelet/kubepods/besteffort/pod7c9e6679-7425-40de-944b-e07fc1f90ae7/deep",
		"kubepods/pod7c9e6679-7425-40de-944b-e07fc1f90ae7-not",
		"a/b/c/d/e/f/g/h/pod" + uid,
	} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got, err := podCgroups(root, []string{uid, other, "f47ac10b-58cc-4372-a567-0e02b2c3d479"})
	want := []string{
		filepath.Join(root, "kubelet/kubepods/besteffort/pod7c9e6679-7425-40de-944b-e07fc1f90ae7"),
		filepath.Join(root, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f8fad5b_d9cb_469f_a165_70867728950e.slice"),
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := podCgroups("/does/not/exist", nil); got != nil || err != nil {
		t.Errorf("without pods: %q, %v", got, err)
	}
}

// Turns of the loop that wait for the same thing bring about one more together, not one each.
func TestAgainIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Daemon{wake: notify.New()}
		count := func() (n int) {
			for over := time.After(150 * time.Millisecond); ; {
				select {
				case <-d.wake:
					n++
				case <-over:
					return n
				}
			}
		}
		for range 10 {
			d.againIn(50 * time.Millisecond)
			time.Sleep(2 * time.Millisecond)
		}
		if n := count(); n != 1 {
			t.Errorf("%d turns, want one", n)
		}
		d.againIn(100 * time.Millisecond)
		d.againIn(20 * time.Millisecond)
		if n := count(); n != 2 {
			t.Errorf("%d turns, want the sooner one too", n)
		}
	})
}

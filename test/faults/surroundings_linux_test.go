package faults

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// troubled waits for a Problem with a code and, once mended, until there is none.
func (w *balanced) troubled(t *testing.T, spoil, repair func() error, says ...string) {
	t.Helper()
	failed := w.calls.failed.Load()
	must(t, spoil())
	w.life.says(t, says...)
	must(t, w.call())
	must(t, repair())
	testutil.Eventually(t, healing, func() error {
		s, err := w.life.status()
		if err == nil && len(s.Problems) > 0 {
			err = fmt.Errorf("problems: %v", s.Problems)
		}
		return err
	})
	if more := w.calls.failed.Load() - failed; more > 0 {
		t.Errorf("%d calls failed", more)
	}
	w.settles(t)
}

// settles checks that all is as wanted once what stir added is gone.
func (w *balanced) settles(t *testing.T) {
	t.Helper()
	must(t, os.RemoveAll(w.path("manifests/stirred.yaml")))
	testutil.Eventually(t, healing, w.asWanted)
	w.obeys(t)
}

// The daemon's socket is removed or replaced: it listens again at its path.
func TestSocketRemoved(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	socket := w.path("run/strait.sock")
	for name, spoil := range map[string]func() error{
		"removed":           func() error { return os.Remove(socket) },
		"directory removed": func() error { return os.RemoveAll(filepath.Dir(socket)) },
		"replaced by a file": func() error {
			return errors.Join(os.Remove(socket), os.WriteFile(socket, nil, 0o600))
		},
		"replaced by a dead socket": func() error {
			l, err := net.Listen("unix", socket+"2")
			if err != nil {
				return err
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			return errors.Join(l.Close(), os.Rename(socket+"2", socket))
		},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, spoil())
			w.life.answers(t)
			info, err := os.Stat(socket)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
	if failed := w.calls.failed.Load(); failed > 0 {
		t.Errorf("%d calls failed", failed)
	}
	w.obeys(t)
}

// putAside returns how to move a file away and back.
func putAside(path string) (remove, restore func() error) {
	kept := path + ".kept"
	return func() error { return os.Rename(path, kept) }, func() error { return os.Rename(kept, path) }
}

// The gossip key's file is removed: the key that was read stays in force, and a Problem names the file.
func TestGossipKeyRemoved(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	remove, restore := putAside(w.path("gossip.key"))
	w.troubled(t, remove, restore, "gossip.keyFile", "the last one stays in force")
}

// The directory of state is removed, is made read-only, or has directories where files are: calls
// work, what is there can be written again, or a Problem names the file.
func TestStateDir(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	state := w.path("state")
	t.Run("read-only", func(t *testing.T) {
		w.troubled(t, func() error {
			return errors.Join(unix.Mount(state, state, "", unix.MS_BIND, ""), unix.Mount("", state, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""), w.stir())
		}, func() error { return errors.Join(unix.Unmount(state, unix.MNT_DETACH), w.stir()) }, "STR5105", "read-only")
	})
	t.Run("a directory instead of the records", func(t *testing.T) {
		w.troubled(t, func() error {
			return errors.Join(os.RemoveAll(filepath.Join(state, "replica.cbor")), os.MkdirAll(filepath.Join(state, "replica.cbor/x"), 0o700), w.stir())
		}, func() error { return errors.Join(os.RemoveAll(filepath.Join(state, "replica.cbor")), w.stir()) }, "STR5105", "replica.cbor")
	})
	t.Run("removed", func(t *testing.T) {
		before, err := os.ReadDir(state)
		must(t, err)
		must(t, os.RemoveAll(state))
		must(t, w.stir())
		testutil.Eventually(t, healing, func() error {
			var errs []error
			for _, e := range before {
				_, err := os.Stat(filepath.Join(state, e.Name()))
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		})
		must(t, w.call())
		w.settles(t)
	})
}

// stir changes something, so that there is something to save.
func (w *balanced) stir() error {
	w.stirred++
	at := w.path("manifests/stirred.yaml")
	return testutil.Replace(at, service(fmt.Sprintf("stirred%d", w.stirred)))
}

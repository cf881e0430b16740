package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/testutil"
)

func inode(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// foreignPin puts a map of another type and size where a pin of strait's is.
func foreignPin(at string) error {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "foreign", Type: ebpf.Hash, KeySize: 3, ValueSize: 5, MaxEntries: 7})
	if err != nil {
		return err
	}
	defer m.Close()
	return errors.Join(os.RemoveAll(at), m.Pin(at))
}

// Another program removes and replaces what is in bpffs, one thing after the other, and then all at once.
// Each is soon as it was. No call fails, because the daemon has everything open.
func TestPins(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	for _, name := range w.everyPin() {
		t.Run("remove "+name, func(t *testing.T) {
			w.heals(t, spoilt{do: func(w *balanced) error { return os.Remove(w.at(name)) }, says: []string{name, "another program"}})
		})
	}
	for _, s := range []spoilt{
		{name: "remove all pins", do: func(w *balanced) error {
			return each(w.everyPin(), func(name string) error { return os.Remove(w.at(name)) })
		}},
		{name: "remove the links' directory", do: func(w *balanced) error { return os.RemoveAll(w.at(layout.LinksDir)) }},
		{name: "remove the maps' directory", do: func(w *balanced) error { return os.RemoveAll(w.mapAt("")) }},
		{name: "remove the directory", do: func(w *balanced) error { return os.RemoveAll(w.pins()) }},
		{name: "replace the directory by an empty one", do: func(w *balanced) error {
			return errors.Join(os.RemoveAll(w.pins()), os.Mkdir(w.pins(), 0o755))
		}},
		{name: "move the directory away", do: func(w *balanced) error { return os.Rename(w.pins(), w.pins()+"_moved") }},
		{name: "replace pins by foreign ones", do: func(w *balanced) error {
			return each([]string{w.mapAt(layout.MapServices), w.mapAt(layout.MapTotals), w.linkAt("connect4"), w.linkAt("sock_release")}, foreignPin)
		}},
		{name: "replace pins by each other", do: func(w *balanced) error {
			return errors.Join(
				unix.Renameat2(unix.AT_FDCWD, w.mapAt(layout.MapSets), unix.AT_FDCWD, w.mapAt(layout.MapOptOuts), unix.RENAME_EXCHANGE),
				unix.Renameat2(unix.AT_FDCWD, w.linkAt("connect4"), unix.AT_FDCWD, w.linkAt("connect6"), unix.RENAME_EXCHANGE))
		}},
		{name: "replace pins by directories", do: func(w *balanced) error {
			return each([]string{w.mapAt(layout.MapServices), w.linkAt("connect4"), w.at(layout.MapSets)}, func(at string) error {
				return errors.Join(os.Remove(at), os.MkdirAll(filepath.Join(at, "below"), 0o700))
			})
		}},
		{name: "open pins to others than root", do: func(w *balanced) error {
			return errors.Join(os.Chmod(w.mapAt(layout.MapServices), 0o666), os.Chmod(w.mapAt(""), 0o777))
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			w.heals(t, s)
			w.obeys(t)
		})
	}
}

// A bpffs is mounted over the one with the pins, and unmounted again. A mount that is no bpffs gets
// a Problem, and calls work all the same.
func TestMountedOver(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	mount := func(kind string) func(w *balanced) error {
		return func(w *balanced) error { return unix.Mount(kind, filepath.Dir(w.pins()), kind, 0, "") }
	}
	unmount := func(w *balanced) error { return unix.Unmount(filepath.Dir(w.pins()), unix.MNT_DETACH) }
	for _, s := range []spoilt{
		{name: "a bpffs over it", do: mount("bpf")},
		{name: "the bpffs unmounted", do: unmount},
	} {
		t.Run(s.name, func(t *testing.T) {
			w.heals(t, s)
			w.obeys(t)
		})
	}
	failed := w.calls.failed.Load()
	must(t, mount("tmpfs")(w))
	w.life.says(t, "STR3108", "is not on a bpffs", "mount -t bpf")
	must(t, unmount(w))
	testutil.Eventually(t, healing, w.asWanted)
	if more := w.calls.failed.Load() - failed; more > 0 {
		t.Errorf("%d calls failed", more)
	}
	w.obeys(t)
	testutil.Eventually(t, patience, func() error {
		s, err := w.life.status()
		if err == nil && len(s.Problems) > 0 {
			err = fmt.Errorf("problems: %v", s.Problems)
		}
		return err
	})
}

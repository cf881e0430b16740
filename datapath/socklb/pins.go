package socklb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/layout"
)

// Parts of the names of pins that are being made.
const (
	newInfix   = "-unfinished-" // followed by digits
	nextSuffix = "_new"         // of an entry that is about to be renamed into place
)

// pins is the directory of pins, locked against other processes.
type pins struct {
	dir  string
	lock *os.File
}

// same reports whether the locked directory is the one that is at its path.
func (p *pins) same() (bool, error) {
	is, err := os.Lstat(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("pins %s: %w", p.dir, err)
	}
	was, err := p.lock.Stat()
	return err == nil && os.SameFile(was, is), err
}

func (p *pins) close() error {
	if p.lock == nil {
		return nil
	}
	return p.lock.Close()
}

// checkBPFFS checks that dir is on a bpffs, and makes its parents there.
func checkBPFFS(dir string) error {
	if err := onBPFFS(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("pins %s: %w", dir, err)
	}
	return nil
}

// onBPFFS checks the same, and changes nothing.
func onBPFFS(dir string) error {
	at := filepath.Dir(dir)
	for {
		var st unix.Statfs_t
		err := unix.Statfs(at, &st)
		if errors.Is(err, unix.ENOENT) && at != "/" {
			at = filepath.Dir(at)
			continue
		}
		if err != nil {
			return fmt.Errorf("pins %s: %w", dir, err)
		}
		if int64(st.Type) != unix.BPF_FS_MAGIC {
			return fmt.Errorf("pins %s: %s is not on a bpffs; run `mount -t bpf bpf /sys/fs/bpf`", dir, at)
		}
		return nil
	}
}

// MountBPFFS mounts a bpffs on a directory, unless there is one already.
func MountBPFFS(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("mount bpffs: %s: %w", dir, err)
	}
	if int64(st.Type) == unix.BPF_FS_MAGIC {
		return nil
	}
	if err := unix.Mount("bpf", dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return fmt.Errorf("mount bpffs on %s: %w", dir, err)
	}
	return nil
}

// lockOwn locks the directory of pins for as long as this process uses it.
func lockOwn(dir string) (*pins, error) {
	f, err := layout.Lock(dir, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("pins %s are in use by another process; stop it first", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("pins %s: %w", dir, err)
	}
	return &pins{dir, f}, nil
}

// tighten takes from everyone but root what an earlier version, or a person, allowed on pins: who can
// open a map can redirect connections. Symbolic links have no mode.
func tighten(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if d.IsDir() {
			mode = 0o700
		}
		if info.Mode().Perm() == mode {
			return nil
		}
		return os.Chmod(path, mode)
	})
}

// create makes the whole directory with fill, under another name beside it, and renames it into
// place. If that fails, undo removes what was made.
func create(dir string, fill, undo func(tmp string) error) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+newInfix+"*")
	if err != nil {
		return fmt.Errorf("make pins: %w", err)
	}
	err = errors.Join(os.Mkdir(filepath.Join(tmp, layout.Dir(layout.Number)), 0o700), os.Mkdir(filepath.Join(tmp, layout.LinksDir), 0o700))
	if err == nil {
		err = fill(tmp)
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return errors.Join(err, undo(tmp))
	}
	return nil
}

// showMaps puts a symbolic link to each map of this layout into dir, replacing what was there.
func showMaps(dir string, maps map[string]*ebpf.Map) error {
	for name := range maps {
		at, target := filepath.Join(dir, name), filepath.Join(layout.Dir(layout.Number), name)
		if has, err := os.Readlink(at); err == nil && has == target {
			continue
		}
		next := at + nextSuffix
		if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("show map %s: %w", name, err)
		}
		if err := os.Symlink(target, next); err != nil {
			return fmt.Errorf("show map %s: %w", name, err)
		}
		if err := os.Rename(next, at); err != nil {
			return fmt.Errorf("show map %s: %w", name, err)
		}
	}
	return nil
}

// sweepHalfMade removes what a process that died in create left behind. The caller holds the parent
// directory's lock.
func sweepHalfMade(dir string) error {
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(dir)+newInfix)
		if ok && strings.Trim(digits, "0123456789") == "" {
			errs = append(errs, removeAll(filepath.Join(filepath.Dir(dir), e.Name())))
		}
	}
	return errors.Join(errs...)
}

// removeAll removes a directory of pins. Links go first, so that no program runs on maps that are
// going away.
func removeAll(dir string) error {
	err := detachAll(filepath.Join(dir, layout.LinksDir))
	return errors.Join(err, os.RemoveAll(dir))
}

// pinMaps pins every map in dir under its own name.
func pinMaps(dir string, maps map[string]*ebpf.Map) error {
	for name, m := range maps {
		if err := m.Pin(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("pin map %s: %w", name, err)
		}
	}
	return nil
}

// loadMaps opens the pinned maps. Their sizes win over the configured ones, because what they hold
// is in use.
func loadMaps(dir string, want map[string]*ebpf.MapSpec) (map[string]*ebpf.Map, error) {
	maps := map[string]*ebpf.Map{}
	for name, spec := range want {
		m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
		if err != nil {
			closeMaps(maps)
			return nil, fmt.Errorf("open pinned map %s: %w; run `straitd cleanup`, then start again", filepath.Join(dir, name), err)
		}
		maps[name] = m
		spec.MaxEntries = m.MaxEntries()
		if err := spec.Compatible(m); err != nil {
			closeMaps(maps)
			return nil, fmt.Errorf("pinned map %s: %w; run `straitd cleanup`, then start again", filepath.Join(dir, name), err)
		}
	}
	return maps, nil
}

func closeMaps(maps map[string]*ebpf.Map) {
	for _, m := range maps {
		m.Close()
	}
}

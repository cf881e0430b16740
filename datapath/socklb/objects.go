package socklb

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/layout"
)

// objects has this balancer's objects, open. An object that something unpins lives on, and with it
// all that it does, until its pin is put back.
type objects struct {
	maps     map[string]*ebpf.Map     // those of LB.maps, by name
	programs map[string]*ebpf.Program // of the hooks
	links    map[string]link.Link     // of the hooks, also below the served cgroup, and of the lists
	// seen has each pin as it was last made or found right. A pin never changes its object, so
	// while it is the same file, it is the same object.
	seen map[string]os.FileInfo
}

func newObjects() objects {
	return objects{map[string]*ebpf.Map{}, map[string]*ebpf.Program{}, map[string]link.Link{}, map[string]os.FileInfo{}}
}

// hold opens the links that are pinned in dir, and remembers all pins as they are. With below,
// those of the served cgroup can be missing.
func (o objects) hold(dir string, lists, below bool) error {
	names, err := belowPins(filepath.Join(dir, layout.LinksDir))
	if err != nil {
		return err
	}
	for _, h := range layout.Hooks {
		names = append(names, h.Name)
	}
	if lists {
		names = slices.AppendSeq(names, maps.Keys(layout.Lists))
	}
	for _, name := range names {
		at := filepath.Join(dir, layout.LinksDir, name)
		l, err := link.LoadPinnedLink(at, nil)
		if below && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open link %s: %w", at, err)
		}
		o.links[name] = l
	}
	return o.remember(dir)
}

// close closes programs and links; the maps belong to LB.maps.
func (o objects) close() error {
	var errs []error
	for _, p := range o.programs {
		errs = append(errs, p.Close())
	}
	for _, l := range o.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// fixture is a pin that must be there: its name below the directory of pins, and how to make it.
type fixture struct {
	name string
	make func(at string) error
}

// fixtures lists all pins in the order in which they are made: links last, so that no program is
// pinned whose maps are not.
func (o objects) fixtures() (out []fixture) {
	folder := layout.Dir(layout.Number)
	for name, m := range o.maps {
		target := filepath.Join(folder, name)
		out = append(out, fixture{target, func(at string) error { return pinMap(m, at) }},
			fixture{name, func(at string) error { return os.Symlink(target, at) }})
	}
	first := len(out)
	for name, l := range o.links {
		out = append(out, fixture{filepath.Join(layout.LinksDir, name), func(at string) error { return pinLink(l, at) }})
	}
	byName := func(a, b fixture) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(out[:first], byName)
	slices.SortFunc(out[first:], byName)
	return out
}

// pinMap pins a map once more. Pin on the map itself would move the pin that it knows of.
func pinMap(m *ebpf.Map, at string) error {
	c, err := m.Clone()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Pin(at)
}

// pinLink is pinMap for a link.
func pinLink(l link.Link, at string) error {
	raw, is := l.(interface{ FD() int })
	if !is {
		return errors.New("the kernel has no links for this hook")
	}
	c, err := duplicate(raw)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Pin(at)
}

// duplicate opens a link once more.
func duplicate(l interface{ FD() int }) (link.Link, error) {
	fd, err := unix.FcntlInt(uintptr(l.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate the link: %w", err)
	}
	return link.NewFromFD(fd) // which owns fd from now on
}

// asMade reports whether a pin is the file that it was when it was last right, closed to others.
func (o objects) asMade(dir, name string) bool {
	was := o.seen[name]
	is, err := os.Lstat(filepath.Join(dir, name))
	return err == nil && was != nil && os.SameFile(was, is) && was.Mode() == is.Mode()
}

// remember notes that the pins in dir are right.
func (o objects) remember(dir string) error {
	for _, f := range o.fixtures() {
		info, err := os.Lstat(filepath.Join(dir, f.name))
		if err != nil {
			return err
		}
		o.seen[f.name] = info
	}
	return nil
}

// mend makes the pins in dir that are missing or are not as they were, and names them. What is in
// the place of a pin goes when the pin is there.
func (o objects) mend(dir string) (changed []string, err error) {
	changed, err = mendDirs(dir)
	if err != nil {
		return changed, err
	}
	var errs []error
	for _, f := range o.fixtures() {
		if o.asMade(dir, f.name) {
			continue
		}
		changed = append(changed, "pin "+f.name)
		info, err := replacePin(filepath.Join(dir, f.name), f.make)
		if err != nil {
			errs = append(errs, fmt.Errorf("pin %s: %w", f.name, err))
			continue
		}
		o.seen[f.name] = info
	}
	return changed, errors.Join(errs...)
}

// mendDirs makes the directories below dir that are missing, and closes those to others that are
// open.
func mendDirs(dir string) (changed []string, err error) {
	for _, name := range []string{".", layout.Dir(layout.Number), layout.LinksDir} {
		at := filepath.Join(dir, name)
		info, err := os.Lstat(at)
		switch {
		case err == nil && info.IsDir() && info.Mode().Perm() == 0o700:
			continue
		case err == nil && info.IsDir():
			err = os.Chmod(at, 0o700)
		case err == nil:
			err = errors.Join(os.Remove(at), os.Mkdir(at, 0o700))
		case errors.Is(err, fs.ErrNotExist):
			err = os.Mkdir(at, 0o700)
		}
		if changed = append(changed, "directory "+at); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// replacePin makes a pin in the place of whatever is there.
func replacePin(at string, make func(at string) error) (os.FileInfo, error) {
	next := at + nextSuffix
	if err := os.RemoveAll(next); err != nil {
		return nil, err
	}
	if err := make(next); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(at); err == nil && info.IsDir() { // a file cannot be renamed over it
		if err := os.RemoveAll(at); err != nil {
			return nil, err
		}
	}
	if err := os.Rename(next, at); err != nil {
		return nil, err
	}
	return os.Lstat(at)
}

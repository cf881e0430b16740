package socklb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/layout"
)

// Mend looks whether links, pins and maps are as this balancer left them, and makes them so again
// where something else changed them: first the links, without which no call is served, then what
// others find under the pins, then what the maps hold. It returns what was not as it should be. The
// error names what still is not.
//
// It does not look at what only programs write: counters, affinities and the records of sockets.
func (l *LB) Mend() (changed []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table == nil {
		return nil, errClosed
	}
	links, err1 := l.mendLinks()
	pins, err2 := l.mendPins()
	below, err3 := l.mendBelow()
	maps, err4 := l.table.mend()
	return slices.Concat(links, pins, below, maps), errors.Join(err1, err2, err3, err4)
}

// mendLinks attaches the programs whose links are dead or lead to another cgroup than the one that
// is at the path now, and takes other programs out of our links.
func (l *LB) mendLinks() (changed []string, err error) {
	cg, err := cgroup.Open(l.cgroup.Path, l.cgroup.ID != cgroup.RootID)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, h := range layout.Hooks {
		if l.below {
			break // mendBelow sees to them
		}
		was, p := l.objects.links[h.Name], l.objects.programs[h.Name]
		on, err := linkCgroup(was)
		if err == nil && on == cg.ID {
			replaced, err := restoreProgram(was, p)
			if replaced {
				changed = append(changed, "program of hook "+h.Name)
			}
			errs = append(errs, err)
			continue
		}
		changed = append(changed, "link of hook "+h.Name)
		now, err := attach(h, p, l.target(cg))
		if err != nil {
			errs = append(errs, fmt.Errorf("attach %s to cgroup %s: %w", h.Name, cg.Path, err))
			continue
		}
		l.objects.links[h.Name] = now
		delete(l.objects.seen, filepath.Join(layout.LinksDir, h.Name)) // its pin has the dead link
		errs = append(errs, was.Close())
	}
	if err = errors.Join(errs...); err == nil {
		l.cgroup.ID = cg.ID
	}
	return changed, err
}

// mendPins puts pins back, into the directory that is at their path now.
func (l *LB) mendPins() (changed []string, err error) {
	dir := l.pins.dir
	same, err := l.pins.same()
	if err != nil {
		return nil, err
	}
	if same {
		return l.objects.mend(dir)
	}
	changed = []string{"directory " + dir}
	if err := l.moveIn(dir); err != nil {
		return changed, err
	}
	more, err := l.objects.mend(dir)
	return append(changed, more...), err
}

// moveIn locks the directory that is at the path of the pins now, instead of the one that was
// there. If there is none, it makes one with all pins.
func (l *LB) moveIn(dir string) error {
	if err := checkBPFFS(dir); err != nil {
		return err
	}
	parent, err := layout.Lock(filepath.Dir(dir), unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("pins %s: %w", dir, err)
	}
	defer parent.Close()
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = os.Remove(dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("pins %s: %w", dir, err)
	}
	if info == nil || !info.IsDir() {
		fill := func(tmp string) error {
			_, err := l.objects.mend(tmp)
			return err
		}
		if err := create(dir, fill, os.RemoveAll); err != nil { // not removeAll: the links are in use
			return err
		}
	}
	now, err := lockOwn(dir)
	if err != nil {
		return err
	}
	err = l.pins.close()
	l.pins.lock = now.lock
	return err
}

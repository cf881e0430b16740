package socklb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/layout"
)

// attachAll attaches the programs to the cgroup and pins their links in dir. A link that is already
// pinned gets the new program in place, so that no connect() in between is missed.
func attachAll(programs map[string]*ebpf.Program, dir string, cg cgroup.Dir, step func(string)) error {
	for _, h := range layout.Hooks {
		if err := attachOne(h, programs[h.Name], filepath.Join(dir, h.Name), cg); err != nil {
			return fmt.Errorf("attach %s to cgroup %s: %w", h.Name, cg.Path, err)
		}
		step("attached " + h.Name)
	}
	return nil
}

func attachOne(h layout.Hook, p *ebpf.Program, pin string, cg cgroup.Dir) error {
	old, err := link.LoadPinnedLink(pin, nil)
	if errors.Is(err, os.ErrNotExist) {
		return attachNew(h, p, pin, cg)
	}
	if err != nil {
		return err
	}
	defer old.Close()
	if on, err := linkCgroup(old); err == nil && on == cg.ID {
		return old.Update(p)
	}
	// The cgroup is a different one, or it was removed and made again, which killed the link.
	next := pin + nextSuffix
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := attachNew(h, p, next, cg); err != nil {
		return err
	}
	return os.Rename(next, pin)
}

func attachNew(h layout.Hook, p *ebpf.Program, pin string, cg cgroup.Dir) error {
	l, err := attach(h, p, cg)
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Pin(pin)
}

func attach(h layout.Hook, p *ebpf.Program, cg cgroup.Dir) (link.Link, error) {
	// Links are always attached as BPF_F_ALLOW_MULTI.
	l, err := link.AttachCgroup(link.CgroupOptions{Path: cg.Path, Attach: h.Attach, Program: p})
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: another program is attached there, or above, exclusively; "+
			"see `bpftool cgroup tree` and have its owner attach it with BPF_F_ALLOW_MULTI", err)
	}
	return l, err
}

// restoreProgram puts our program back into a link in which there is another.
func restoreProgram(l link.Link, p *ebpf.Program) (replaced bool, err error) {
	about, err := l.Info()
	if err != nil {
		return false, err
	}
	want, err := p.Info()
	if err != nil {
		return false, err
	}
	id, known := want.ID()
	if !known || about.Program == id {
		return false, nil
	}
	return true, l.Update(p)
}

// linkCgroup returns the id of the cgroup that a link is attached to; 0 if that cgroup is gone.
func linkCgroup(l link.Link) (uint64, error) {
	info, err := l.Info()
	if err != nil {
		return 0, err
	}
	c := info.Cgroup()
	if c == nil {
		return 0, errors.New("pinned link is not a cgroup link")
	}
	return c.CgroupId, nil
}

// detachAll detaches and removes the links that are pinned in dir; some can be missing.
func detachAll(dir string) error {
	var errs []error
	for _, h := range layout.Hooks {
		for _, pin := range []string{filepath.Join(dir, h.Name), filepath.Join(dir, h.Name+nextSuffix)} {
			l, err := link.LoadPinnedLink(pin, nil)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("detach %s: %w", pin, err))
				continue
			}
			// Detach now, not when the kernel gets round to it. A dead link has nothing to detach.
			_ = l.Detach()
			errs = append(errs, l.Unpin(), l.Close())
		}
	}
	return errors.Join(errs...)
}

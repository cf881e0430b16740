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
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
)

// target is where programs are attached.
type target struct {
	cgroup.Dir
	// first puts the programs that choose backends in front of those that others have on the
	// cgroup.
	first bool
	// below attaches nothing to the cgroup itself: Mend attaches to those right below.
	below bool
}

// attachAll attaches the programs to the cgroup and pins their links in dir. A link that is already
// pinned gets the new program in place, or gives way to a new link in front of it; either way no
// connect() in between is missed.
func attachAll(programs map[string]*ebpf.Program, dir string, to target, step func(string)) error {
	for _, h := range layout.Hooks {
		if to.below {
			break
		}
		if err := attachOne(h, programs[h.Program], filepath.Join(dir, h.Name), to); err != nil {
			return fmt.Errorf("attach %s to cgroup %s: %w", h.Name, to.Path, err)
		}
		step("attached " + h.Name)
	}
	return updateBelow(programs, dir)
}

func attachOne(h layout.Hook, p *ebpf.Program, pin string, to target) error {
	old, err := link.LoadPinnedLink(pin, nil)
	if errors.Is(err, os.ErrNotExist) {
		return attachNew(h, p, pin, to)
	}
	if err != nil {
		return err
	}
	defer old.Close()
	stays, err := staysIn(h, old, to)
	if err != nil {
		return err
	}
	if stays {
		return old.Update(p)
	}
	next := pin + nextSuffix
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := attachNew(h, p, next, to); err != nil {
		return err
	}
	if err := os.Rename(next, pin); err != nil {
		return err
	}
	// Until here both links of a hook were in force, which is harmless: the second program finds a
	// backend's address, which is no frontend's, and lets it pass. An error means that the old link
	// was dead already.
	_ = old.Detach()
	return nil
}

// staysIn reports whether a link is in its place. It is not if the cgroup is a different one, if
// that was removed and made again, which killed the link, or if others are in front of the link.
func staysIn(h layout.Hook, old link.Link, to target) (bool, error) {
	on, err := linkCgroup(old)
	if err != nil || on != to.ID {
		return false, nil
	}
	if !to.first || !h.Forward {
		return true, nil
	}
	info, err := old.Info()
	if err != nil {
		return false, err
	}
	all, err := inspect.Attached(h, to.Path, 0)
	return len(all) > 0 && all[0] == info.Program, err
}

func attachNew(h layout.Hook, p *ebpf.Program, pin string, to target) error {
	l, err := attach(h, p, to)
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Pin(pin)
}

// attach attaches a program. Of several programs on one cgroup, the first that knows an address
// replaces it, and the next ones find no frontend. So strait's go to the front where they choose a
// backend, or another project's balancer would choose for strait's frontends too.
//
// Where a program undoes a choice, its place does not matter: each balancer knows its own sockets
// only. There strait's are last, so that an address that two balancers replaced, one after the
// other, would be put back in reverse.
//
// BPF_F_PREORDER is no way to the front: until Linux 6.18.40 and 7.1.5, when another link of a
// cgroup that has such a program is updated, the kernel puts the new program into the wrong place,
// for example ours (CVE-2026-72427).
func attach(h layout.Hook, p *ebpf.Program, to target) (link.Link, error) {
	cgroup, err := os.Open(to.Path)
	if err != nil {
		return nil, err
	}
	defer cgroup.Close()
	// Links are always attached as BPF_F_ALLOW_MULTI.
	o := link.RawLinkOptions{Target: int(cgroup.Fd()), Attach: h.Attach, Program: p}
	if to.first && h.Forward {
		o.Flags = unix.BPF_F_BEFORE
	}
	l, err := link.AttachRawLink(o)
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: another program is attached there, or above, exclusively; "+
			"see `bpftool cgroup tree` and have its owner attach it with BPF_F_ALLOW_MULTI", err)
	}
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return duplicate(l) // because a raw link does not know its cgroup
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
	names, err := belowPins(dir) // first: those of the served cgroup still serve
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, h := range layout.Hooks {
		names = append(names, h.Name, h.Name+nextSuffix)
	}
	for _, name := range names {
		pin := filepath.Join(dir, name)
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
	return errors.Join(errs...)
}

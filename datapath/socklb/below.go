package socklb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
)

// Another project's balancer that comes before ours on the served cgroup decides about the
// addresses that it knows: it was there first on a kernel before Linux 6.17, or went to the front
// later. But the kernel runs the programs of a cgroup before those of its parents. So while others
// are in front, the programs that choose are also attached to each cgroup right below the served
// one. Both run: the second one finds a backend's address, which is no frontend, and lets it pass.
// Only the sockets right in the served cgroup are left to the other balancer. On a node, these are
// no pods and no services.
//
// With Config.BelowRoot, all programs are attached there, and none to the served cgroup.

// belowHook is a hook of a cgroup right below the served one.
type belowHook struct {
	hook layout.Hook
	cgroup.Dir
}

// pin returns the name of its link in the directory of links.
func (p belowHook) pin() string { return p.hook.Name + "_" + strconv.FormatUint(p.ID, 10) }

// hookBelow returns the hook of a link with this name, if it belongs to a cgroup below the served
// one.
func hookBelow(name string) (layout.Hook, bool) {
	for _, h := range layout.Hooks {
		if id, is := strings.CutPrefix(name, h.Name+"_"); is {
			_, err := strconv.ParseUint(id, 10, 64)
			return h, err == nil
		}
	}
	return layout.Hook{}, false
}

// belowPins lists the links of cgroups below the served one that are pinned in the directory of
// links.
func belowPins(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if _, is := hookBelow(e.Name()); is {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// updateBelow puts new programs into the links below, when those of the served cgroup have them. A
// link whose cgroup is gone stays as it is: mendBelow removes it.
func updateBelow(programs map[string]*ebpf.Program, dir string) error {
	names, err := belowPins(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		l, err := link.LoadPinnedLink(filepath.Join(dir, name), nil)
		if err != nil {
			return err
		}
		h, _ := hookBelow(name)
		err = l.Update(programs[h.Program])
		if err = errors.Join(err, l.Close()); err != nil && !errors.Is(err, unix.ENOLINK) {
			return fmt.Errorf("update the program of link %s: %w", name, err)
		}
	}
	return nil
}

// mendBelow attaches the programs that should be below the served cgroup, and detaches those that
// should not. It returns the links that something else detached.
func (l *LB) mendBelow() (changed []string, err error) {
	places, err := l.placesBelow()
	if err != nil {
		return nil, err
	}
	var errs []error
	want := map[string]bool{}
	for _, p := range places {
		want[p.pin()] = true
		died, err := l.attachBelow(p)
		if died {
			changed = append(changed, fmt.Sprintf("link of hook %s on cgroup %s", p.hook.Name, p.Path))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) { // the cgroup has gone meanwhile
			errs = append(errs, fmt.Errorf("attach %s to cgroup %s: %w", p.hook.Name, p.Path, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return changed, err
	}
	for name := range l.objects.links {
		_, below := hookBelow(name)
		root := l.below && slices.ContainsFunc(layout.Hooks, func(h layout.Hook) bool { return h.Name == name })
		if root || below && !want[name] {
			errs = append(errs, l.drop(name))
		}
	}
	return changed, errors.Join(errs...)
}

// drop detaches a link and removes its pin.
func (l *LB) drop(name string) error {
	old, at := l.objects.links[name], filepath.Join(layout.LinksDir, name)
	_ = old.Detach() // an error means that it was dead already
	delete(l.objects.links, name)
	delete(l.objects.seen, at)
	err := os.Remove(filepath.Join(l.pins.dir, at))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, old.Close())
}

// placesBelow returns where programs should be below the served cgroup, in the order in which they
// are attached.
func (l *LB) placesBelow() (out []belowHook, err error) {
	var children []cgroup.Dir
	for _, h := range layout.Hooks {
		needed := l.below
		if !needed && h.Forward {
			if needed, err = l.isBehind(h); err != nil {
				return nil, err
			}
		}
		if !needed {
			continue
		}
		if children == nil {
			if children, err = l.cgroup.Children(); err != nil {
				return nil, err
			}
		}
		for _, c := range children {
			out = append(out, belowHook{h, c})
		}
	}
	return out, nil
}

// isBehind reports whether others' programs run before ours on the served cgroup.
func (l *LB) isBehind(h layout.Hook) (bool, error) {
	info, err := l.objects.programs[h.Name].Info()
	if err != nil {
		return false, err
	}
	own, _ := info.ID()
	all, err := inspect.Attached(h, l.cgroup.Path, 0)
	return len(all) > 0 && all[0] != own, err
}

// attachBelow makes sure that a place has our program, and that its link is pinned. It reports
// whether there was a link that something else had detached.
func (l *LB) attachBelow(p belowHook) (died bool, err error) {
	name := p.pin()
	program := l.objects.programs[p.hook.Name]
	was := l.objects.links[name]
	if was != nil {
		if on, err := linkCgroup(was); err == nil && on == p.ID {
			_, err := restoreProgram(was, program)
			return false, err
		}
		died = true
	}
	now, err := attach(p.hook, program, target{Dir: p.Dir})
	if err != nil {
		return died, err
	}
	if died {
		_ = was.Close()
	}
	l.objects.links[name] = now
	at := filepath.Join(layout.LinksDir, name)
	path := filepath.Join(l.pins.dir, at)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return died, err
	}
	if err := pinLink(now, path); err != nil {
		return died, err
	}
	l.objects.seen[at], err = os.Lstat(path)
	return died, err
}

package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// permit loads a program for connect() over IPv4 that permits all.
func permit() (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "permit", Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
}

// onLink does something with the link of a hook.
func (w *balanced) onLink(hook string, do func(link.Link) error) error {
	l, err := link.LoadPinnedLink(w.linkAt(hook), nil)
	if err != nil {
		return err
	}
	defer l.Close()
	return do(l)
}

// onPermit does something with a program that permits all, and with the machine's cgroup.
func (w *balanced) onPermit(do func(p *ebpf.Program, cgroup *os.File) error) error {
	p, err := permit()
	if err != nil {
		return err
	}
	defer p.Close()
	f, err := os.Open(w.cgroup)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(p, f)
}

func detach(l link.Link) error { return l.Detach() }

// Another program detaches hooks, puts its own into their links, or recreates the cgroup. Each
// program is soon on its hook again. Calls fail until then, but only if their own hook is gone.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	for _, h := range layout.Hooks {
		s := spoilt{breaks: true, says: []string{"link of hook " + h.Name, "another program"}, do: func(w *balanced) error { return w.onLink(h.Name, detach) }}
		t.Run("detach "+h.Name, func(t *testing.T) { w.heals(t, s) })
	}
	for _, s := range []spoilt{
		{name: "detach all", breaks: true, do: func(w *balanced) error {
			return each(hookNames(), func(name string) error { return w.onLink(name, detach) })
		}},
		{name: "detach all and remove their pins", breaks: true, do: func(w *balanced) error {
			return each(hookNames(), func(name string) error {
				return errors.Join(w.onLink(name, detach), os.Remove(w.linkAt(name)))
			})
		}},
		{name: "another program in the link", breaks: true, says: []string{"program of hook connect4"}, do: func(w *balanced) error {
			return w.onPermit(func(p *ebpf.Program, _ *os.File) error {
				return w.onLink("connect4", func(l link.Link) error { return l.Update(p) })
			})
		}},
		{name: "detach the program itself", do: func(w *balanced) error { // the kernel refuses that, because a link has it
			return w.onPermit(func(_ *ebpf.Program, cgroup *os.File) error {
				return w.onLink("connect4", func(l link.Link) error {
					info, err := l.Info()
					if err != nil {
						return err
					}
					ours, err := ebpf.NewProgramFromID(info.Program)
					if err != nil {
						return err
					}
					defer ours.Close()
					err = link.RawDetachProgram(link.RawDetachProgramOptions{Target: int(cgroup.Fd()), Program: ours, Attach: ebpf.AttachCGroupInet4Connect})
					if err == nil {
						err = errors.New("the kernel detached it")
					} else {
						err = nil
					}
					return err
				})
			})
		}},
		{name: "make the cgroup anew", breaks: true, says: []string{"link of hook sock_release"}, do: remake},
	} {
		t.Run(s.name, func(t *testing.T) {
			w.heals(t, s)
			w.obeys(t)
		})
	}
}

func hookNames() (names []string) {
	for _, h := range layout.Hooks {
		names = append(names, h.Name)
	}
	return names
}

// remake removes the machine's cgroup and makes it again, as a restart of a container manager does,
// with the same processes.
func remake(w *balanced) error {
	text, err := os.ReadFile(filepath.Join(w.cgroup, "cgroup.procs"))
	if err != nil {
		return err
	}
	procs := strings.Fields(string(text))
	move := func(to string) error {
		return each(procs, func(pid string) error {
			return os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0)
		})
	}
	return errors.Join(move(filepath.Dir(w.cgroup)), os.Remove(w.cgroup), os.Mkdir(w.cgroup, 0o755), move(w.cgroup))
}

// Another program is attached beside strait's: calls work. If it is in front of strait's, a Problem
// names it; behind strait's, or if only processes in no cgroup below are concerned, only the list
// of such programs does.
func TestForeignProgram(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	for name, c := range map[string]struct {
		anchor link.Anchor
		order  datapath.ForeignOrder
	}{"behind": {nil, datapath.After}, "in front": {link.Head(), datapath.Before}, "in front of a cgroup with others below": {link.Head(), datapath.Top}} {
		t.Run(name, func(t *testing.T) {
			if c.order == datapath.Top {
				below := filepath.Join(w.cgroup, "below")
				must(t, os.Mkdir(below, 0o755))
				t.Cleanup(func() { must(t, os.Remove(below)) })
			}
			must(t, w.onPermit(func(p *ebpf.Program, cgroup *os.File) error {
				o := link.RawAttachProgramOptions{Target: int(cgroup.Fd()), Program: p, Attach: ebpf.AttachCGroupInet4Connect,
					Flags: unix.BPF_F_ALLOW_MULTI, Anchor: c.anchor}
				if err := link.RawAttachProgram(o); err != nil {
					if c.anchor != nil {
						t.Skipf("this kernel has no order of programs: %v", err)
					}
					return err
				}
				// On a busy machine, the daemon looks for cgroups below only at each regular check.
				testutil.Eventually(t, healing, func() error { return w.listed(c.order) })
				if c.order != datapath.Top { // then strait has links below, too
					must(t, w.asWanted())
				}
				return link.RawDetachProgram(link.RawDetachProgramOptions{Target: int(cgroup.Fd()), Program: p, Attach: ebpf.AttachCGroupInet4Connect})
			}))
			testutil.Eventually(t, patience, func() error {
				s, err := w.life.status()
				if err == nil && len(s.Problems) > 0 {
					err = fmt.Errorf("problems: %v", s.Problems)
				}
				return err
			})
			testutil.Eventually(t, patience, w.asWanted)
		})
	}
	if failed := w.calls.failed.Load(); failed > 0 {
		t.Errorf("%d calls failed", failed)
	}
}

// listed is nil if the status has the program that permits all, running when it should, and a
// Problem if that is first.
func (w *balanced) listed(order datapath.ForeignOrder) error {
	s, err := w.life.status()
	if err != nil {
		return err
	}
	f := s.Datapath.Foreign
	if len(f) != 1 || f[0].Name != "permit" || f[0].Order != order {
		return fmt.Errorf("foreign programs %+v", f)
	}
	first := len(s.Problems) == 1 && s.Problems[0].Code == problem.HooksShared
	if first != (order == datapath.Before) || !first && len(s.Problems) > 0 {
		return fmt.Errorf("problems: %v", s.Problems)
	}
	return nil
}

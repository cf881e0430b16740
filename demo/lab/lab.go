// Package lab makes a clusterset's worth of machines on one: every node a network namespace with its own
// cgroup and its own BPF file system directory, pods behind a bridge, a routed underlay between regions.
//
// Input is a Size and a directory; output are places to start processes in, links to cut, and at the end
// a machine as it was. Nothing is made in the root network namespace. It must not know strait: what runs
// in the places is the caller's business.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/fabric"
)

// cgroupName is the directory of the lab under the cgroup v2 mount.
const cgroupName = "strait-demo"

// Options say what to build and where.
type Options struct {
	Size Size
	// Dir is where everything on disk goes; it is made, and removed by TearDown.
	Dir string
	// Enter is a command line that calls Enter with a resolv.conf and a command appended to it:
	// "strait demo enter". Only processes with Names need it.
	Enter []string
}

// Lab is a built lab.
type Lab struct {
	Topology
	Dir   string
	enter []string
	state state
	lock  *os.File
}

// Build makes the lab, after removing what an earlier one may have left in the same directory. On error
// nothing is left.
func Build(ctx context.Context, o Options) (*Lab, error) {
	l, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if err := l.build(ctx); err != nil {
		return nil, errors.Join(err, l.TearDown(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// prepare checks the machine, takes the lock and writes down what is going to be made.
func prepare(o Options) (*Lab, error) {
	if err := o.Size.Check(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", o.Dir, err)
	}
	if err := preflight(dir); err != nil {
		return nil, err
	}
	if err := clearOld(dir); err != nil {
		return nil, err
	}
	l := &Lab{Topology: New(o.Size), Dir: dir, enter: o.Enter, state: state{Size: o.Size, Pid: os.Getpid()}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of the demo: %w", err)
	}
	if err := l.claim(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for _, d := range []string{fabric.NetNSDir, wireguardDir} {
		if _, err := os.Stat(d); errors.Is(err, os.ErrNotExist) {
			l.state.MadeDirs = append(l.state.MadeDirs, d)
		}
	}
	return l, l.state.save(dir)
}

// claim makes this the one lab of the machine, or says why it cannot be.
func (l *Lab) claim() error {
	if err := l.findCgroup(); err != nil {
		return err
	}
	lock, err := lockDir(l.state.Cgroup)
	if err != nil {
		return err
	}
	l.lock = lock
	if names := leftovers(); len(names) > 0 {
		err = fmt.Errorf("network namespaces of another demo are there (%s and %d more): run `strait demo down` first",
			names[0], len(names)-1)
	} else if err = tunnelPossible(); err == nil {
		return nil
	}
	// The cgroup may be the other demo's: it goes only if it is empty.
	_ = os.Remove(l.state.Cgroup)
	l.lock = nil
	return errors.Join(err, lock.Close(), l.releaseCgroupMount())
}

// clearOld removes what a demo in the same directory left when it was killed or had failed. A directory
// with anything else in it is refused: all of it would be removed at the end.
func clearOld(dir string) error {
	old, err := Open(dir, nil)
	if errors.Is(err, ErrNone) {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			return fmt.Errorf("--dir %s is not empty and no demo's: name a directory that does not exist yet", dir)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if old.state.Kept {
		return fmt.Errorf("a demo is up in %s (it was started with --keep): run `strait demo down` first", dir)
	}
	if err := old.TearDown(context.Background()); errors.Is(err, ErrBusy) {
		return err
	} else if err != nil {
		return fmt.Errorf("remove the remains of an earlier demo: %w", err)
	}
	return nil
}

func (l *Lab) findCgroup() error {
	mount, made, err := fabric.Cgroup2(filepath.Join(l.Dir, "cgroup"))
	if err != nil {
		return err
	}
	if made {
		l.state.CgroupMount = mount
	}
	l.state.Cgroup = filepath.Join(mount, cgroupName)
	return fabric.MakeCgroups(l.state.Cgroup)
}

// ErrBusy says that another process holds the machine's one lab.
var ErrBusy = errors.New("a demo is running on this machine: wait for its end, or press Ctrl-C there")

// lockDir takes the lock that only one demo on the machine can hold: it lies on the cgroup, which all
// of them share, and not on any file.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

func (l *Lab) build(ctx context.Context) error {
	if err := adopt(); err != nil {
		return err
	}
	bpf := filepath.Join(l.Dir, "bpf")
	if err := os.MkdirAll(bpf, 0o755); err != nil {
		return fmt.Errorf("make mount point: %w", err)
	}
	if err := unix.Mount("bpf", bpf, "bpf", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mount a BPF file system at %s: %w; the kernel needs CONFIG_BPF_SYSCALL", bpf, err)
	}
	if err := l.addRouters(); err != nil {
		return err
	}
	for _, c := range l.Clusters {
		for _, n := range c.Nodes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.AddNode(c, n); err != nil {
				return fmt.Errorf("make node %s: %w", n.Name, err)
			}
		}
	}
	return nil
}

// Keep leaves the lab up for later processes: until TearDown, no other can be built in its directory.
func (l *Lab) Keep() error {
	l.state.Kept = true
	return l.state.save(l.Dir)
}

// Cgroup is the cgroup v2 directory of a node: all of its processes are below it.
func (l *Lab) Cgroup(node string) string { return filepath.Join(l.state.Cgroup, node) }

// Pins is the node's directory in the lab's BPF file system.
func (l *Lab) Pins(node string) string { return filepath.Join(l.Dir, "bpf", node) }

// NodeDir is the node's directory on disk.
func (l *Lab) NodeDir(node string) string { return filepath.Join(l.Dir, node) }

func (l *Lab) resolvFile(node string) string { return filepath.Join(l.NodeDir(node), "resolv.conf") }

// cluster finds the cluster of a node.
func (l *Lab) cluster(n Node) Cluster {
	i := slices.IndexFunc(l.Clusters, func(c Cluster) bool { return c.Name == n.Cluster })
	return l.Clusters[i]
}

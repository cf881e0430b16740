// Package lab builds a whole clusterset's machines on one machine. Every node is a network
// namespace with its own cgroup and its own directory in a BPF file system. Pods sit behind a
// bridge, and a routed underlay joins the regions.
//
// Inputs are a Size and a directory. Outputs are places to start processes in and links to cut;
// TearDown leaves the machine as it was. Nothing is made in the root network namespace. The package
// must not know strait: callers decide what runs in the places.
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

// Options say what Build makes, and where.
type Options struct {
	Size Size
	// Dir is the directory for all files. Build creates it, TearDown removes it.
	Dir string
	// Enter is the start of a command line that calls Enter: "strait demo enter". The path of a
	// resolv.conf and a command are appended to it. Only processes with Names need it.
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

// Build makes the lab. It first removes what an earlier lab has left in the same directory. On
// error it removes what it made.
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

// prepare checks the machine, takes the lock and saves the state with what will be made.
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

// claim makes this the machine's only lab, or returns why it cannot be.
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
		err = fmt.Errorf("network namespaces of another demo exist (%s and %d more): run `strait demo down` first",
			names[0], len(names)-1)
	} else if err = tunnelPossible(); err == nil {
		return nil
	}
	// The cgroup can belong to the other demo, so it is removed only if it is empty.
	_ = os.Remove(l.state.Cgroup)
	l.lock = nil
	return errors.Join(err, lock.Close(), l.releaseCgroupMount())
}

// clearOld removes what an earlier demo left in the directory when it failed or was killed. A
// directory that holds anything else is refused, because TearDown would remove all of it.
func clearOld(dir string) error {
	old, err := Open(dir, nil)
	if errors.Is(err, ErrNone) {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			return fmt.Errorf("--dir %s is not empty and holds no demo: name a directory that does not exist yet", dir)
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

// ErrBusy reports that another process holds the machine's only lab.
var ErrBusy = errors.New("a demo is running on this machine: wait for its end, or press Ctrl-C there")

// lockDir takes the lock that only one demo on the machine can hold. It locks the cgroup directory,
// which all demos share, whatever their --dir.
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

// Keep leaves the lab up for later processes. Until TearDown, no other lab can be built in its
// directory.
func (l *Lab) Keep() error {
	l.state.Kept = true
	return l.state.save(l.Dir)
}

// Cgroup returns the cgroup v2 directory of a node. All of the node's processes are below it.
func (l *Lab) Cgroup(node string) string { return filepath.Join(l.state.Cgroup, node) }

// Pins returns the node's directory in the lab's BPF file system.
func (l *Lab) Pins(node string) string { return filepath.Join(l.Dir, "bpf", node) }

// NodeDir returns the node's directory on disk.
func (l *Lab) NodeDir(node string) string { return filepath.Join(l.Dir, node) }

func (l *Lab) resolvFile(node string) string { return filepath.Join(l.NodeDir(node), "resolv.conf") }

// cluster returns the cluster of a node.
func (l *Lab) cluster(n Node) Cluster {
	i := slices.IndexFunc(l.Clusters, func(c Cluster) bool { return c.Name == n.Cluster })
	return l.Clusters[i]
}

package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// RootID is the inode of the root of the machine's cgroup v2 tree, on every supported kernel. The
// root that a private cgroup namespace shows has another inode.
const RootID = 1

// Dir is a cgroup v2 directory.
type Dir struct {
	Path string
	// ID is the inode, which links report as the cgroup's id.
	ID uint64
}

// Open checks that path (or the mount, if path is empty) is a cgroup that socket hooks can serve.
func Open(path string, allowVirtualRoot bool) (Dir, error) {
	if path == "" {
		found, err := Mount()
		if err != nil {
			return Dir{}, err
		}
		path = found
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Dir{}, fmt.Errorf("cgroup %s: %w; name an existing cgroup v2 directory", path, err)
	}
	if int64(fs.Type) != unix.CGROUP2_SUPER_MAGIC {
		return Dir{}, fmt.Errorf("cgroup %s is not cgroup v2; name a directory of the cgroup2 mount, or leave it empty", path)
	}
	id, err := inode(path)
	if err != nil {
		return Dir{}, fmt.Errorf("cgroup %s: %w", path, err)
	}
	if id != RootID && !allowVirtualRoot {
		return Dir{}, fmt.Errorf("cgroup %s is not the root of the machine's cgroup tree: processes elsewhere would not be served; "+
			"in a container mount the host's tree (hostPath /sys/fs/cgroup, or cgroupns host), or allow a virtual root on purpose", path)
	}
	return Dir{path, id}, nil
}

// Children returns the cgroups right below this one. Those that go meanwhile can be missed.
func (c Dir) Children() (out []Dir, err error) {
	entries, err := os.ReadDir(c.Path)
	if err != nil {
		return nil, fmt.Errorf("list the cgroups below %s: %w", c.Path, err)
	}
	for _, e := range entries {
		path := filepath.Join(c.Path, e.Name())
		if id, err := inode(path); e.IsDir() && err == nil {
			out = append(out, Dir{path, id})
		}
	}
	return out, nil
}

// Mount finds where cgroup v2 is mounted. On hybrid machines it is mounted beside v1.
func Mount() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroup v2: %w", err)
	}
	defer f.Close()
	mounts, err := mountsIn(f)
	if err != nil {
		return "", fmt.Errorf("find cgroup v2: %w", err)
	}
	if len(mounts) == 0 {
		return "", errors.New("cgroup v2 is not mounted: mount -t cgroup2 none /sys/fs/cgroup/unified, or name a mount of it")
	}
	// There can be several mounts, some of which show only a part of the tree. Prefer one that
	// shows the real root.
	for _, m := range mounts {
		if id, err := inode(m); err == nil && id == RootID {
			return m, nil
		}
	}
	return mounts[0], nil
}

// mountsIn reads the cgroup2 mount points from proc_pid_mountinfo(5).
func mountsIn(r io.Reader) (mounts []string, err error) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	s := bufio.NewScanner(r)
	for s.Scan() {
		before, after, _ := strings.Cut(s.Text(), " - ")
		fields := strings.Fields(before)
		if len(fields) >= 5 && strings.HasPrefix(after, "cgroup2 ") {
			mounts = append(mounts, unescape.Replace(fields[4]))
		}
	}
	return mounts, s.Err()
}

// HoldsSelf reports whether this process' sockets belong to the cgroup or one below it.
func (c Dir) HoldsSelf() (bool, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return false, err
	}
	own, err := ownCgroup(string(b))
	if err != nil {
		return false, err
	}
	if c.ID == RootID {
		return true, nil
	}
	top, err := Mount()
	if err != nil {
		return false, err
	}
	for rel := own; strings.HasPrefix(rel, "/") && !strings.HasPrefix(rel, "/.."); rel = filepath.Dir(rel) {
		if id, err := inode(filepath.Join(top, rel)); err == nil && id == c.ID {
			return true, nil
		}
		if rel == "/" {
			break
		}
	}
	return false, nil
}

// ownCgroup reads the cgroup v2 path from proc_pid_cgroup(5).
func ownCgroup(text string) (string, error) {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(path, "\n"), nil
		}
	}
	return "", errors.New("/proc/self/cgroup names no cgroup v2")
}

func inode(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}

package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// MaxLevels is MAX_LEVELS of bpf/lib/config.h. The programs do not look for cgroups at this depth
// or deeper.
const MaxLevels = 32

// Tree is the machine's cgroup v2 tree, as far as this process sees it.
type Tree struct {
	root   *os.File          // of a mount that shows the whole tree; nil if there is none
	levels map[uint64]uint32 // the depths that are known, by id
}

// OpenTree opens the tree. The caller must close it.
func OpenTree() (*Tree, error) {
	top, err := Mount()
	if err != nil {
		return nil, err
	}
	t := &Tree{levels: map[uint64]uint32{RootID: 0}}
	if id, err := inode(top); err == nil && id == RootID {
		t.root, err = os.Open(top)
		return t, err
	}
	own, err := ownLevels()
	if err != nil && !errors.Is(err, errNoAncestors) { // without them, the error of climb names what to mount
		return nil, err
	}
	maps.Copy(t.levels, own)
	return t, nil
}

// Close releases the tree.
func (t *Tree) Close() {
	if t.root != nil {
		t.root.Close()
	}
}

// Find returns the id and the depth of the cgroup at path, which can be on any mount.
func (t *Tree) Find(path string) (id uint64, level uint32, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, 0, fmt.Errorf("cgroup %s: %w; name an existing cgroup v2 directory", path, err)
	}
	if int64(fs.Type) != unix.CGROUP2_SUPER_MAGIC {
		return 0, 0, fmt.Errorf("cgroup %s is not cgroup v2; name a directory of the cgroup2 mount", path)
	}
	if id, err = inode(path); err != nil {
		return 0, 0, fmt.Errorf("cgroup %s: %w", path, err)
	}
	at, err := t.Path(id)
	if err != nil { // no permission to open by id, or no mount that shows the whole tree
		at = path
	}
	if level, err = climb(at, t.levels); err != nil {
		return 0, 0, fmt.Errorf("cgroup %s: %w", path, err)
	}
	switch {
	case level == 0:
		return 0, 0, fmt.Errorf("cgroup %s is the root: that would opt out every process; stop the daemon and clean up instead", path)
	case level >= MaxLevels:
		return 0, 0, fmt.Errorf("cgroup %s is %d deep: only the first %d levels of the tree can opt out", path, level, MaxLevels-1)
	}
	return id, level, nil
}

// fileIDKernfs is FILEID_KERNFS of linux/exportfs.h: the type of a handle that holds the id.
const fileIDKernfs = 0xfe

// Path returns the path of a cgroup, given its id. The error is ESTALE if the cgroup was removed;
// any other error means that its path cannot be determined.
func (t *Tree) Path(id uint64) (string, error) {
	if t.root == nil {
		return "", fmt.Errorf("find cgroup %d: no mount shows the machine's whole tree", id)
	}
	handle := unix.NewFileHandle(fileIDKernfs, binary.NativeEndian.AppendUint64(nil, id))
	fd, err := unix.OpenByHandleAt(int(t.root.Fd()), handle, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("find cgroup %d: %w", id, err)
	}
	defer unix.Close(fd)
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// Paths returns the paths of cgroups, given their ids, sorted. Those that were removed, or that are
// not visible from here, are missing.
func (t *Tree) Paths(ids map[uint64]bool) ([]string, error) {
	out, unseen := []string{}, map[uint64]bool{}
	for id := range ids {
		path, err := t.Path(id)
		switch {
		case err == nil:
			out = append(out, path)
		case !errors.Is(err, unix.ESTALE):
			unseen[id] = true
		}
	}
	if len(unseen) > 0 {
		found, err := Search(unseen)
		if err != nil {
			return nil, fmt.Errorf("find cgroups: %w", err)
		}
		out = slices.AppendSeq(out, maps.Values(found))
	}
	slices.Sort(out)
	return out, nil
}

//go:build linux

package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/layout"
)

// Everyone lists the socket address programs that are in force for a cgroup or in a part of it, on a
// machine on which strait has no pins: see Foreign.
func Everyone(path string) ([]datapath.ForeignProgram, error) { return foreign(path, nil) }

// Foreign lists the socket address programs of others that are in force for a cgroup or in a part
// of it, sorted by hook. These are all programs except those whose links are pinned in pins.
// Programs of cgroups that come and go meanwhile can be missed. It takes eight requests for each
// cgroup.
func Foreign(pins, path string) ([]datapath.ForeignProgram, error) {
	ours, err := Programs(pins)
	if err != nil {
		return nil, fmt.Errorf("find foreign programs: %w", err)
	}
	return foreign(path, ours)
}

func foreign(path string, ours map[ebpf.ProgramID]bool) ([]datapath.ForeignProgram, error) {
	found, err := foreignOnPath(path, ours)
	if err != nil {
		return nil, fmt.Errorf("find foreign programs: %w", err)
	}
	below, err := foreignBelow(path, ours)
	if err != nil {
		return nil, fmt.Errorf("find foreign programs: %w", err)
	}
	found = append(found, below...)
	slices.SortStableFunc(found, func(a, b datapath.ForeignProgram) int { return strings.Compare(a.Hook, b.Hook) })
	return found, nil
}

// Programs returns the programs whose links are pinned in pins: the balancer's own.
func Programs(pins string) (map[ebpf.ProgramID]bool, error) {
	dir := filepath.Join(pins, layout.LinksDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	ids := map[ebpf.ProgramID]bool{}
	for _, e := range entries {
		if !slices.ContainsFunc(layout.Hooks, func(h layout.Hook) bool { return strings.HasPrefix(e.Name(), h.Name) }) {
			continue // a list
		}
		l, err := link.LoadPinnedLink(filepath.Join(dir, e.Name()), nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue // that of a cgroup below, which has gone meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("open link %s: %w", e.Name(), err)
		}
		info, err := l.Info()
		l.Close()
		if err != nil {
			return nil, fmt.Errorf("read link %s: %w", e.Name(), err)
		}
		ids[info.Program] = true
	}
	return ids, nil
}

// foreignOnPath returns the programs that are in force for a socket of the cgroup itself: those of
// the cgroup and of its parents.
func foreignOnPath(path string, ours map[ebpf.ProgramID]bool) (found []datapath.ForeignProgram, err error) {
	for _, h := range addressHooks() {
		ids, err := Attached(h, path, unix.BPF_F_QUERY_EFFECTIVE)
		if err != nil {
			return nil, err
		}
		order := datapath.Before
		if len(ids) > 0 && !ours[ids[0]] && h.Forward {
			if order, err = orderAhead(h, path, ours); err != nil {
				return nil, err
			}
		}
		for _, id := range ids {
			if ours[id] {
				order = datapath.After
				continue
			}
			where, err := attachedAt(h, path, id)
			if err != nil {
				return nil, err
			}
			found = append(found, datapath.ForeignProgram{Hook: h.Name, ID: uint32(id), Name: programName(id), Path: where, Order: order})
		}
	}
	return found, nil
}

// orderAhead returns the order of programs that are in front of ours on a cgroup: Top if all
// cgroups right below have ours as well.
func orderAhead(h layout.Hook, path string, ours map[ebpf.ProgramID]bool) (datapath.ForeignOrder, error) {
	children, err := cgroup.Dir{Path: path}.Children()
	if err != nil {
		return "", err
	}
	order := datapath.Before
	for _, c := range children {
		ids, err := Attached(h, c.Path, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue // removed meanwhile
		}
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(ids, func(id ebpf.ProgramID) bool { return ours[id] }) {
			return datapath.Before, nil
		}
		order = datapath.Top
	}
	return order, nil
}

// foreignBelow returns the programs of the cgroups below the given one.
func foreignBelow(top string, ours map[ebpf.ProgramID]bool) (found []datapath.ForeignProgram, err error) {
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || !d.IsDir() || path == top {
			return err
		}
		for _, h := range addressHooks() {
			ids, err := Attached(h, path, 0)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, id := range ids {
				if !ours[id] {
					found = append(found, datapath.ForeignProgram{Hook: h.Name, ID: uint32(id), Name: programName(id), Path: path, Order: datapath.Below})
				}
			}
		}
		return nil
	})
	return found, err
}

// addressHooks returns the hooks where programs can affect each other: all except sock_release.
func addressHooks() []layout.Hook {
	return slices.DeleteFunc(slices.Clone(layout.Hooks), func(h layout.Hook) bool { return h.Attach == ebpf.AttachCgroupInetSockRelease })
}

// Attached lists the programs of a cgroup's hook, in the order in which they run.
func Attached(h layout.Hook, cgroup string, flags uint32) ([]ebpf.ProgramID, error) {
	f, err := os.Open(cgroup)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := link.QueryPrograms(link.QueryOptions{Target: int(f.Fd()), Attach: h.Attach, QueryFlags: flags})
	if err != nil {
		return nil, fmt.Errorf("list the programs of hook %s on cgroup %s: %w", h.Name, cgroup, err)
	}
	var ids []ebpf.ProgramID
	for _, p := range r.Programs {
		ids = append(ids, p.ID)
	}
	return ids, nil
}

// attachedAt returns which of a cgroup and its parents has the program; "" if it is none that is
// visible from here.
func attachedAt(h layout.Hook, cgroup string, id ebpf.ProgramID) (string, error) {
	for dir := cgroup; ; dir = filepath.Dir(dir) {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || int64(st.Type) != unix.CGROUP2_SUPER_MAGIC {
			return "", nil // above the mount
		}
		ids, err := Attached(h, dir, 0)
		if err != nil {
			return "", err
		}
		if slices.Contains(ids, id) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// programName returns a program's full name if its BTF has it, otherwise the 15 characters that the
// kernel keeps; "" if the program is gone.
func programName(id ebpf.ProgramID) string {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ""
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

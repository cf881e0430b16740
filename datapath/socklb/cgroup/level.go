package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// climb returns how deep a cgroup is, from the nearest cgroup above it whose depth is known. levels
// has the known depths, by id. There is no file that tells the depth on a mount that shows only a
// part of the tree, as in containers.
func climb(path string, levels map[uint64]uint32) (level uint32, err error) {
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0, err
	}
	for up := uint32(0); ; up++ {
		var fs unix.Statfs_t
		if err := unix.Statfs(at, &fs); err != nil {
			return 0, err
		}
		if int64(fs.Type) != unix.CGROUP2_SUPER_MAGIC {
			return 0, errors.New("its depth is unknown, because its mount shows neither the root of the machine's tree nor a cgroup that this process is in or below; " +
				"mount the host's tree (hostPath /sys/fs/cgroup, or cgroupns host)")
		}
		id, err := inode(at)
		if err != nil {
			return 0, err
		}
		if level, ok := levels[id]; ok {
			return level + up, nil
		}
		at = filepath.Dir(at)
	}
}

// errNoAncestors means that this kernel (before Linux 5.15) does not give programs of this kind
// which cgroups they run in.
var errNoAncestors = errors.New("no bpf_get_current_ancestor_cgroup_id for tracing programs before Linux 5.15")

// ownLevels returns the depths of the cgroups that this process is in or below, by id; the root's
// depth is 0. In a cgroup namespace only the kernel knows them, and it tells only programs: this
// one is run once, in this thread.
func ownLevels() (map[uint64]uint32, error) {
	ids, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8 * MaxLevels, MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("make map of own cgroups: %w", err)
	}
	defer ids.Close()
	code := asm.Instructions{
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, ids.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Reg(asm.R6, asm.R0),
	}
	for level := range int16(MaxLevels) {
		code = append(code, asm.Mov.Imm(asm.R1, int32(level)), asm.FnGetCurrentAncestorCgroupId.Call(),
			asm.StoreMem(asm.R6, 8*level, asm.R0, asm.DWord))
	}
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return())
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "strait_levels", Type: ebpf.RawTracepoint, License: "GPL", Instructions: code})
	if err != nil && strings.Contains(err.Error(), "unknown func") {
		return nil, errNoAncestors
	}
	if err != nil {
		return nil, fmt.Errorf("load program that reads own cgroups: %w", err)
	}
	defer prog.Close()
	if _, err := prog.Run(&ebpf.RunOptions{}); err != nil {
		return nil, fmt.Errorf("read own cgroups: %w", err)
	}
	var found [MaxLevels]uint64
	if err := ids.Lookup(uint32(0), &found); err != nil {
		return nil, fmt.Errorf("read own cgroups: %w", err)
	}
	levels := map[uint64]uint32{}
	for level, id := range found {
		if id != 0 {
			levels[id] = uint32(level)
		}
	}
	return levels, nil
}

// Search finds the paths of cgroups, given their ids, on all mounts of cgroup v2, for processes that
// cannot open them by id. It walks the whole tree.
func Search(ids map[uint64]bool) (map[uint64]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mounts, err := mountsIn(f)
	if err != nil {
		return nil, err
	}
	found := map[uint64]string{}
	for _, mount := range mounts {
		err := filepath.WalkDir(mount, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // removed meanwhile, or not readable
			}
			if id, err := inode(path); err == nil && ids[id] && found[id] == "" {
				found[id] = path
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

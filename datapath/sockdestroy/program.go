package sockdestroy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bounds of a search for programs: of how many processes of a cgroup the names are read, and how many open
// files are looked at in all.
const (
	maxProcesses = 256
	maxFiles     = 20_000
)

// Programs returns the names of the programs that have sockets, by the sockets' cookies: what /proc/PID/comm
// has. Cgroups are the directories of the sockets' cgroups, by ID: only processes in these are looked at, and
// their open files only if they are of several programs. What is not found, or goes beyond the bounds, is
// left out.
func Programs(procfs string, cgroups map[uint64]string, sockets map[uint64]Socket) map[uint64]string {
	p := programs{procfs: procfs, left: maxFiles, out: map[uint64]string{}}
	byCgroup := map[uint64]map[uint32]uint64{} // the cookies by inode
	for cookie, s := range sockets {
		if s.Inode == 0 || cgroups[s.Cgroup] == "" {
			continue
		}
		if byCgroup[s.Cgroup] == nil {
			byCgroup[s.Cgroup] = map[uint32]uint64{}
		}
		byCgroup[s.Cgroup][s.Inode] = cookie
	}
	for id, wanted := range byCgroup {
		p.cgroup(cgroups[id], wanted)
	}
	return p.out
}

type programs struct {
	procfs string
	left   int // open files that may still be looked at
	out    map[uint64]string
}

// cgroup finds the programs of some sockets that were made in one cgroup.
func (p *programs) cgroup(dir string, wanted map[uint32]uint64) {
	list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	pids := strings.Fields(string(list))
	names := map[string]string{} // by process
	one, several := "", false
	for _, pid := range pids[:min(len(pids), maxProcesses)] {
		comm, err := os.ReadFile(filepath.Join(p.procfs, pid, "comm"))
		if err != nil { // it ended, or is of another PID namespace
			continue
		}
		name := strings.ToValidUTF8(strings.TrimSuffix(string(comm), "\n"), "?")
		several = several || one != "" && name != one
		names[pid], one = name, name
	}
	if !several && len(pids) <= maxProcesses {
		for _, cookie := range wanted {
			if one != "" {
				p.out[cookie] = one
			}
		}
		return
	}
	for _, pid := range pids[:min(len(pids), maxProcesses)] {
		if len(wanted) == 0 {
			return
		}
		if name := names[pid]; name != "" {
			p.process(pid, name, wanted)
		}
	}
}

// process takes the sockets that a process has open out of those that are wanted.
func (p *programs) process(pid, name string, wanted map[uint32]uint64) {
	dir := filepath.Join(p.procfs, pid, "fd")
	open, err := os.Open(dir)
	if err != nil {
		return
	}
	defer open.Close()
	files, _ := open.Readdirnames(p.left + 1)
	for _, fd := range files {
		if p.left--; p.left < 0 {
			return
		}
		target, _ := os.Readlink(filepath.Join(dir, fd))
		text, is := strings.CutPrefix(target, "socket:[")
		inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 32)
		if !is || err != nil {
			continue
		}
		if cookie, found := wanted[uint32(inode)]; found {
			p.out[cookie] = name
			delete(wanted, uint32(inode))
		}
	}
}

package sockdestroy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filesystems are those of processes and cgroups, as far as Programs reads them.
type filesystems struct {
	*testing.T
	proc, cgroups string
}

func (m filesystems) write(text string, path ...string) {
	m.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
}

// process adds one with sockets.
func (m filesystems) process(pid int, comm string, inodes ...int) {
	m.Helper()
	m.write(comm+"\n", m.proc, fmt.Sprint(pid), "comm")
	fd := filepath.Join(m.proc, fmt.Sprint(pid), "fd")
	if err := os.MkdirAll(fd, 0o755); err != nil {
		m.Fatal(err)
	}
	for i, inode := range inodes {
		if err := os.Symlink(fmt.Sprintf("socket:[%d]", inode), filepath.Join(fd, fmt.Sprint(i))); err != nil {
			m.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/null", filepath.Join(fd, "99")); err != nil {
		m.Fatal(err)
	}
}

// TestPrograms: a socket's program is that of its cgroup if there is only one, and otherwise that of the
// process that has it open.
func TestPrograms(t *testing.T) {
	m := filesystems{t, t.TempDir(), t.TempDir()}
	m.process(10, "nginx", 100)
	m.process(11, "nginx", 101)
	m.process(20, "sh")
	m.process(21, "curl", 200)
	m.process(22, "wget", 201, 202)
	m.process(30, "odd\xff", 300)
	m.write("10\n11\n", m.cgroups, "one", "cgroup.procs")
	m.write("20\n21\n0\n22\n23\n", m.cgroups, "several", "cgroup.procs") // 23 ended, 0 is elsewhere
	m.write("30\n", m.cgroups, "odd", "cgroup.procs")
	m.write("", m.cgroups, "empty", "cgroup.procs")
	dirs := map[uint64]string{9: ""}
	for id, name := range []string{"one", "several", "odd", "empty", "gone"} {
		dirs[uint64(id)] = filepath.Join(m.cgroups, name)
	}
	sockets := map[uint64]Socket{}
	for cookie, s := range map[uint64][2]int{1: {100, 0}, 2: {150, 0}, 3: {200, 1}, 4: {202, 1}, 5: {299, 1}, 6: {300, 2}, 7: {400, 3}, 8: {500, 4}, 9: {600, 9}, 10: {0, 0}} {
		sockets[cookie] = Socket{Cookie: cookie, Inode: uint32(s[0]), Cgroup: uint64(s[1])}
	}
	want := map[uint64]string{1: "nginx", 2: "nginx", 3: "curl", 4: "wget", 6: "odd?"}
	if got := Programs(m.proc, dirs, sockets); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestProgramsBounds: a cgroup with more processes, or files, than the bounds costs no more than these.
func TestProgramsBounds(t *testing.T) {
	m := filesystems{t, t.TempDir(), t.TempDir()}
	var pids []string
	for pid := 1; pid <= maxProcesses+1; pid++ {
		pids = append(pids, fmt.Sprint(pid))
	}
	m.process(1, "first", 1)
	m.process(maxProcesses, "last", 2)
	m.process(maxProcesses+1, "beyond", 3)
	m.write(strings.Join(pids, "\n"), m.cgroups, "cgroup.procs")
	sockets := map[uint64]Socket{1: {Inode: 1, Cgroup: 7}, 2: {Inode: 2, Cgroup: 7}, 3: {Inode: 3, Cgroup: 7}}
	if got := Programs(m.proc, map[uint64]string{7: m.cgroups}, sockets); !maps.Equal(got, map[uint64]string{1: "first", 2: "last"}) {
		t.Errorf("of many processes: %v", got)
	}
	p := programs{procfs: m.proc, left: 1, out: map[uint64]string{}}
	wanted := map[uint32]uint64{1: 1, 2: 2}
	p.process("1", "first", wanted)
	p.process(fmt.Sprint(maxProcesses), "last", wanted)
	if p.left >= 0 || len(p.out) > 1 {
		t.Errorf("of many files: %v, %d left", p.out, p.left)
	}
}

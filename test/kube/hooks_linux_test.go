package kube

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// countConnects attaches a program to a cgroup that counts the IPv4 connects of its processes.
func countConnects(t *testing.T, cgroup string) (connects func() uint64) {
	t.Helper()
	must(t, rlimit.RemoveMemlock())
	count, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	must(t, err)
	t.Cleanup(func() { count.Close() })
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, License: "GPL",
		Instructions: asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, count.FD()),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "out"),
			asm.Mov.Imm(asm.R1, 1),
			asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, 1).WithSymbol("out"),
			asm.Return(),
		},
	})
	must(t, err)
	t.Cleanup(func() { prog.Close() })
	at, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: ebpf.AttachCGroupInet4Connect, Program: prog})
	must(t, err)
	t.Cleanup(func() { at.Close() })
	return func() (n uint64) {
		must(t, count.Lookup(uint32(0), &n))
		return n
	}
}

// A hook on a node's cgroup sees the connects of that node's pods, and of no other's.
func TestHooksSeeTheirNodeOnly(t *testing.T) {
	testutil.NeedRoot(t)
	l := theLab(t)
	startPods(t, l, "c1", "hook")
	_, server := podOn(t, "c1", "hook", "c1n1")
	on1 := countConnects(t, l.CgroupOf("c1n1"))
	on2 := countConnects(t, l.CgroupOf("c1n2"))
	for _, tc := range []struct {
		node         string
		more1, more2 bool
	}{{"c1n1", true, false}, {"c1n2", false, true}} {
		shell, _ := podOn(t, "c1", "hook-shell", tc.node)
		// Kubelet's probes connect too, from the node: they are not pods', but in its cgroup.
		before1, before2 := on1(), on2()
		const calls = 20
		if _, err := inPod(t.Context(), l, "c1", shell, "sh", "-c",
			"for i in $(seq 20); do curl -sS --fail --max-time 2 -o /dev/null http://"+server+":8080/ || exit 1; done"); err != nil {
			t.Fatal(err)
		}
		for range calls {
			// A program of the node itself is seen as well.
			_, err := l.OnNode(t.Context(), tc.node, "curl", "-sS", "--fail", "--max-time", "2", "-o", "/dev/null", "http://"+server+":8080/")
			must(t, err)
		}
		more1, more2 := on1()-before1, on2()-before2
		t.Logf("2×%d calls on %s: %d connects on c1n1, %d on c1n2", calls, tc.node, more1, more2)
		if more1 >= 2*calls != tc.more1 || more2 >= 2*calls != tc.more2 {
			t.Errorf("2×%d calls from a pod and from the host of %s: hooks counted %d connects on c1n1 and %d on c1n2", calls, tc.node, more1, more2)
		}
	}
}

// What strait needs of a node: a cgroup and a bpffs of its own, at known paths.
func TestNodePlaces(t *testing.T) {
	l := theLab(t)
	inodes := map[string]bool{}
	for _, n := range []string{"c1n1", "c1n2"} {
		out, err := l.OnNode(t.Context(), n, "stat", "-f", "-c", "%T", "/sys/fs/bpf", kubelab.NodeCgroup)
		if want := "bpf_fs\ncgroup2fs\n"; err != nil || out != want {
			t.Errorf("%s: file systems %q (%v), want %q", n, out, err, want)
		}
		out, err = l.OnNode(t.Context(), n, "stat", "-c", "%i", kubelab.NodeCgroup)
		must(t, err)
		var s unix.Stat_t
		must(t, unix.Stat(l.CgroupOf(n), &s))
		if got := strings.TrimSpace(out); got != strconv.FormatUint(s.Ino, 10) || inodes[got] {
			t.Errorf("%s: its cgroup is %s, want %d and no other node's", n, got, s.Ino)
		}
		inodes[strconv.FormatUint(s.Ino, 10)] = true
		_, err = l.OnNode(t.Context(), n, "mkdir", "/sys/fs/bpf/only-here")
		must(t, err)
	}
	if _, err := os.Stat("/sys/fs/bpf/only-here"); err == nil {
		t.Error("a node's bpffs is the machine's")
	}
	// Every pod's first process is below its node's cgroup.
	procs, err := filepath.Glob(l.CgroupOf("c1n1") + "/kubepods/*/*/*/cgroup.procs")
	if err != nil || len(procs) == 0 {
		t.Errorf("no pod is in the cgroup of c1n1: %v", err)
	}
}

package socklb

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// neighbour is another project's program on one of our hooks. It counts its calls and gives a verdict: 1 is go on.
type neighbour struct {
	calls *ebpf.Map
	link  link.Link
}

func attachNeighbour(t testing.TB, cgroup string, at ebpf.AttachType, verdict int32) *neighbour {
	t.Helper()
	calls, err := ebpf.NewMap(&ebpf.MapSpec{Name: "calls", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { calls.Close() })
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "neighbour", Type: ebpf.CGroupSockAddr, AttachType: at, License: "GPL",
		Instructions: asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, calls.FD()),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "out"),
			asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, verdict).WithSymbol("out"),
			asm.Return(),
		},
	})
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	defer p.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: at, Program: p})
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	t.Cleanup(func() { l.Close() })
	return &neighbour{calls, l}
}

func (n *neighbour) called(t testing.TB) (calls uint64) {
	t.Helper()
	if err := n.calls.Lookup(uint32(0), &calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

// TestNeighbours: with programs of others on every hook, before ours and after, sockets of each family are served
// as without them, and each of these programs runs; what one of them refuses is refused.
func TestNeighbours(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	all := map[string]*neighbour{}
	attach := func(when string) {
		for _, h := range layout.Hooks {
			if h.Attach != ebpf.AttachCgroupInetSockRelease {
				all[h.Name+" "+when] = attachNeighbour(t, cfg.Cgroup, h.Attach, 1)
			}
		}
	}
	attach("before ours")
	l := opened(t, cfg)
	attach("after ours")
	for _, f := range families {
		pods := map[l4.Proto]netip.AddrPort{}
		vip := netip.AddrPortFrom(f.vip, 80)
		var want []datapath.Frontend
		for _, proto := range []l4.Proto{l4.TCP, l4.UDP} {
			pods[proto] = serve(t, proto, netip.AddrPortFrom(f.pod, 0))
			want = append(want, datapath.Frontend{Addr: l4.New(f.vip, 80, proto), Backends: one(pods[proto])})
		}
		reconcile(t, l, want...)
		t.Run(f.name, func(t *testing.T) {
			testConnected(t, f, unix.SOCK_STREAM, vip, pods[l4.TCP])
			testConnected(t, f, unix.SOCK_DGRAM, vip, pods[l4.UDP])
			testUnconnected(t, f, vip, pods[l4.UDP])
			testDirect(t, f, pods)
		})
	}
	for where, n := range all {
		if n.called(t) == 0 {
			t.Errorf("the program on %s was never called", where)
		}
	}
	for _, at := range []ebpf.AttachType{ebpf.AttachCGroupInet4Connect, ebpf.AttachCGroupInet6Connect} {
		attachNeighbour(t, cfg.Cgroup, at, 0)
	}
	for _, f := range families {
		c := newClient(t, f, unix.SOCK_STREAM)
		if err := c.connect(netip.AddrPortFrom(f.vip, 80)); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: a neighbour refuses, and connect returns %v", f.name, err)
		}
		c.close()
	}
}

package sockdestroy

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// TestLook: the open sockets of two pods are told apart by backend, with the bytes of each, their
// inodes and their cgroups; a socket that was refused or closed is not found.
func TestLook(t *testing.T) {
	if !inside(t) {
		return
	}
	if err := haveDiag(); err != nil {
		testutil.Missing(t, "this kernel has no sock_diag: "+err.Error())
	}
	m := newMachine(t, newDiag(), Policy{})
	a, b := newPod(t), newPod(t)
	m.set(old)
	first := a.open(unix.SOCK_STREAM, v4, v4.vip())
	first.ask()
	first.ask()
	first.ask()
	second := a.open(unix.SOCK_STREAM, v4, v4.vip())
	gone := a.open(unix.SOCK_STREAM, v4, v4.vip())
	gone.ask()
	gone.close()
	m.set(new_)
	third := b.open(unix.SOCK_STREAM, v6, v6.vip())
	third.ask()
	datagrams := b.open(unix.SOCK_DGRAM, v4, v4.vip())
	datagrams.ask()
	m.set(stuck) // nothing listens there
	if err := a.rpc.Call("Client.Open", Call{Kind: unix.SOCK_STREAM, Form: v4, To: v4.vip()}, new(int)); err == nil {
		t.Fatal("a connection to a port without a listener succeeds")
	}

	records, err := m.records()
	if err != nil {
		t.Fatal(err)
	}
	cookies := map[uint64]bool{}
	for _, r := range records {
		cookies[r.Cookie] = true
	}
	found, err := Look(t.Context(), "/proc", cookies)
	if err != nil {
		t.Fatal(err)
	}
	cgroup := inodeOfFile(t, testutil.InsideCgroup())
	type seen struct {
		proto          l4.Proto
		backend        netip.AddrPort
		sent, received uint64
	}
	got := map[seen]int{}
	for _, r := range records {
		s, is := found[r.Cookie]
		if !is {
			continue
		}
		if s.Inode == 0 || s.Cgroup != cgroup || s.Proto != r.Proto || s.Local.Port() == 0 {
			t.Errorf("socket %+v; want an inode, cgroup %d and a port", s, cgroup)
		}
		one := seen{proto: s.Proto, backend: r.Backend}
		if s.TCP != nil {
			one.sent, one.received = s.TCP.Sent, s.TCP.Received
			if s.TCP.RTT <= 0 {
				t.Errorf("socket %+v has no round-trip time", s.TCP)
			}
		}
		got[one]++
	}
	answer := func(f form, p place) uint64 { return uint64(len(f.backend(p).String())) }
	want := map[seen]int{
		{l4.TCP, v4.backend(old), 3, 3 * answer(v4, old)}: 1,
		{l4.TCP, v4.backend(old), 0, 0}:                   1,
		{l4.TCP, v6.backend(new_), 1, answer(v6, new_)}:   1,
		{l4.UDP, v4.backend(new_), 0, 0}:                  1,
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for s, n := range want {
		if got[s] != n {
			t.Errorf("%+v: got %d, want %d", s, got[s], n)
		}
	}
	for _, s := range []*socket{first, second, third, datagrams} {
		s.close()
	}
	if found, err := Look(t.Context(), "/proc", cookies); err != nil || len(found) != 0 {
		t.Errorf("all are closed: found %v, %v", found, err)
	}
}

func inodeOfFile(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

package cilium

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// built returns the objects, or skips the test with the reason why they cannot be had.
func built(t *testing.T) Objects {
	t.Helper()
	o, err := Build(t.Context(), t.TempDir())
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestLayout: Cilium's own object has the maps, and its structures the fields, that this package
// writes.
func TestLayout(t *testing.T) {
	spec, err := ebpf.LoadCollectionSpec(built(t).Traced)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		in         table
		key, value string
	}{
		{inServices, "address@0 dport@4 backend_slot@6 proto@8 scope@9 pad@10 =12", "@0 count@4 rev_nat_index@6 flags@8 flags2@9 qcount@10 =12"},
		{inBackends, "__u32 =4", "address@0 port@4 proto@6 flags@7 cluster_id@8 zone@10 pad@11 =12"},
		{inReverse, "__u16 =2", "address@0 port@4 =6"},
		{inAffinity, "backend_id@0 rev_nat_id@4 pad@6 =8", "__u8 =1"},
	} {
		m := spec.Maps[mapNames[tc.in]]
		if m == nil {
			t.Errorf("no map %s", mapNames[tc.in])
			continue
		}
		if key, value := shape(t, m.Key), shape(t, m.Value); key != tc.key || value != tc.value {
			t.Errorf("%s: key %q, value %q; want %q, %q", m.Name, key, value, tc.key, tc.value)
		}
	}
	if spec.Maps[socketsMap].MaxEntries != Sockets {
		t.Errorf("%d sockets, want %d", spec.Maps[socketsMap].MaxEntries, Sockets)
	}
}

// shape returns the fields of a structure with their offsets, and the size.
func shape(t *testing.T, typ btf.Type) (out string) {
	t.Helper()
	if s, ok := btf.UnderlyingType(typ).(*btf.Struct); ok {
		for _, m := range s.Members {
			out += fmt.Sprintf("%s@%d ", m.Name, m.Offset.Bytes())
		}
	} else {
		out = typ.TypeName() + " "
	}
	size, err := btf.Sizeof(typ)
	if err != nil {
		t.Fatal(err)
	}
	return out + fmt.Sprintf("=%d", size)
}

// objectsEnv tells the inner process of a test where the outer one has put the objects: the inner one
// has no network to fetch the module with.
const objectsEnv = "STRAIT_TEST_CILIUM"

// TestBalances: Cilium's programs, loaded and fed by this package, connect a socket to a backend,
// show the frontend as its peer, and forget the socket when it is closed.
func TestBalances(t *testing.T) {
	testutil.NeedRoot(t)
	if testutil.InsideCgroup() == "" {
		t.Setenv(objectsEnv, filepath.Dir(filepath.Dir(built(t).Traced)))
	}
	if !testutil.Inside(t, 0) {
		return
	}
	o := In(os.Getenv(objectsEnv))
	for name, cfg := range map[string]Config{
		"traced": {Object: o.Traced}, "untraced": {Object: o.Untraced}, "preallocated": {Object: o.Traced, Preallocate: true},
	} {
		cfg.Cgroup, cfg.Slots, cfg.Backends = testutil.InsideCgroup(), 100, 100
		if err := balances(cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func balances(cfg Config) (err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	lb, err := Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lb.Close()) }()
	at := netip.MustParseAddrPort("10.96.0.1:80")
	pod := l.Addr().(*net.TCPAddr).AddrPort()
	f := datapath.Frontend{Addr: l4.New(at.Addr(), at.Port(), l4.TCP), Backends: []datapath.Backend{{IP: pod.Addr(), Port: pod.Port(), Weight: 1}}}
	gone := datapath.Frontend{Addr: f.Addr}
	if err := lb.Update([]datapath.Frontend{f}); err != nil {
		return err
	}
	if err := connects(lb, at); err != nil {
		return err
	}
	// A terminating backend is used as long as there is no other, and kept until it has gone.
	if err := lb.apply(lb.agent.change(lb.agent.services[f.Addr].state.without(gone))); err != nil {
		return err
	}
	if err := connects(lb, at); err != nil {
		return fmt.Errorf("terminating: %w", err)
	}
	if err := lb.UpdateGracefully([]datapath.Frontend{gone}); err != nil {
		return err
	}
	if err := connects(lb, at); !errors.Is(err, unix.EHOSTUNREACH) {
		return fmt.Errorf("without backends: %v, want %v", err, unix.EHOSTUNREACH)
	}
	return nil
}

// connects connects a socket, and checks its peer and its entry in the map of sockets.
func connects(lb *LB, at netip.AddrPort) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())})
	if err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	peer, err := unix.Getpeername(fd)
	during := lb.sockets()
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return err
	}
	if p, ok := peer.(*unix.SockaddrInet4); !ok || p.Addr != at.Addr().As4() || p.Port != int(at.Port()) {
		return fmt.Errorf("the peer is %v, want %v", peer, at)
	}
	if after := lb.sockets(); during != 1 || after != 0 {
		return fmt.Errorf("%d sockets while connected and %d afterwards, want 1 and 0", during, after)
	}
	return nil
}

// sockets counts the sockets that Cilium's programs remember.
func (lb *LB) sockets() (n int) {
	var key [16]byte
	var value [8]byte
	for it := lb.objects.Maps[socketsMap].Iterate(); it.Next(&key, &value); {
		n++
	}
	return n
}

package socklb

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// TestFileLists: where the kernel refuses iterators over maps, those over open files list the same records, each
// once, also if a socket is open more than once. The test removes the lists that the balancer made, so it runs
// on every kernel.
func TestFileLists(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxSockets = 1 // all sockets but one have their records in their storage
	l := opened(t, cfg)
	links := filepath.Join(cfg.Pins, layout.LinksDir)
	missing := storage(l.maps)
	for name, of := range layout.Lists {
		if err := os.Remove(filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
		missing[name] = missing[of]
		delete(missing, of)
	}
	err := pinFileLists(links, missing, l.maps)
	if refused := (*ebpf.VerifierError)(nil); errors.As(err, &refused) && strings.Contains(fmt.Sprintf("%+v", refused), "invalid func") {
		t.Skip("this kernel lacks bpf_sock_from_file (5.11)") // test/vm/skips.txt has it
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { testFileLists(t, l, f) })
	}
}

func testFileLists(t *testing.T, l *LB, f family) {
	pod := serve(t, l4.UDP, netip.AddrPortFrom(f.pod, 0))
	var frontends []datapath.Frontend
	for port := range uint16(3) {
		frontends = append(frontends, datapath.Frontend{Addr: l4.New(f.vip, 80+port, l4.UDP), Backends: one(pod)})
	}
	reconcile(t, l, frontends...)
	const connected = 5
	var clients []*client
	for range connected {
		c := newClient(t, f, unix.SOCK_DGRAM)
		if err := c.connect(netip.AddrPortFrom(f.vip, 80)); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	again, err := unix.Dup(clients[connected-1].fd)
	if err != nil {
		t.Fatal(err)
	}
	wantRecords(t, l, connected, connected)
	unconnected := newClient(t, f, unix.SOCK_DGRAM)
	for port := range uint16(len(frontends)) {
		if err := unconnected.send(netip.AddrPortFrom(f.vip, 80+port)); err != nil {
			t.Fatal(err)
		}
	}
	wantRecords(t, l, connected+len(frontends), connected+len(frontends))
	for _, c := range append(clients, unconnected) {
		c.close()
	}
	wantRecords(t, l, 1, 1)
	if err := unix.Close(again); err != nil {
		t.Fatal(err)
	}
	noRecords(t, l)
}

// Package clients runs real, unmodified programs through frontends: curl, dig, a musl resolver, iperf3, the table
// in programs_linux_test.go, and small ones that use sockets in unusual ways (tricks_linux_test.go). Each test
// asserts what the program printed.
//
// The clients live in a network namespace and a cgroup whose sockets the balancer serves; the servers live in
// another namespace, at the far end of a veth, and outside of the cgroup. No daemon is needed. It must not know
// how the balancer works.
package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// Addresses of the servers' machine, where backends listen, and of frontends, which no machine has and no
// route leads to.
var (
	pod4 = netip.MustParseAddr("192.0.2.2")
	pod6 = netip.MustParseAddr("2001:db8::2")
	// Of the same machine, so that a frontend can have two backends.
	other4 = netip.MustParseAddr("192.0.2.3")

	front4 = netip.MustParseAddr("10.96.0.1")
	front6 = netip.MustParseAddr("fd00:96::1")
)

// family is what a test does for IPv4 and again for IPv6.
type family struct {
	name       string
	front, pod netip.Addr
}

var families = []family{{"IPv4", front4, pod4}, {"IPv6", front6, pod6}}

// clientWithin is how long a client may take, servers' start included.
const clientWithin = 30 * time.Second

// world is a clients' machine, a servers' machine and a balancer.
type world struct {
	t       *testing.T
	cgroup  *os.File
	lb      *socklb.LB
	servers *testutil.Namespace
	clients *testutil.Namespace
	dir     string   // a row's folder
	env     []string // what a row's scripts know
}

// newWorld makes them.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	dir := testutil.Cgroup(t)
	var err error
	w.cgroup, err = os.Open(dir)
	must(t, err)
	t.Cleanup(func() { w.cgroup.Close() })
	cfg := socklb.Config{
		Pins:   filepath.Join(testutil.BPFFS(t), "strait"),
		Cgroup: dir, AllowVirtualRoot: true, Log: testutil.Logger(t),
		MaxFrontends: 64, MaxBackends: 1024, MaxSockets: 1024,
	}
	w.lb, err = socklb.Open(cfg)
	must(t, err)
	t.Cleanup(func() {
		if err := w.lb.Close(); err != nil {
			t.Error(err)
		}
		// A process that another test starts at this moment has the lock of the pins too, until its exec().
		testutil.Eventually(t, 5*time.Second, func() error { return socklb.CleanUp(cfg) })
	})
	w.servers = testutil.NetNS(t)
	w.clients = testutil.NetNS(t)
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(w.servers.FD()),
	}))
	must(t, w.servers.Do(func() error { return setUp("192.0.2.2/24", "192.0.2.3/24", "2001:db8::2/64") }))
	must(t, w.clients.Do(func() error { return setUp("192.0.2.1/24", "2001:db8::1/64") }))
	return w
}

func setUp(addrs ...string) error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	for _, text := range addrs {
		a, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		a.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(link, a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

// in is the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	v := *w
	v.t = t
	return &v
}

// balance makes the frontends what they should be.
func (w *world) balance(want ...datapath.Frontend) {
	w.t.Helper()
	must(w.t, problem.Strict(w.lb.Reconcile(want, true)))
}

// frontend is one with backends that all have the same port.
func frontend(ip netip.Addr, port uint16, proto l4.Proto, backendPort uint16, backends ...netip.Addr) datapath.Frontend {
	f := datapath.Frontend{Addr: l4.New(ip, port, proto)}
	for _, b := range backends {
		f.Backends = append(f.Backends, datapath.Backend{IP: b, Port: backendPort, Weight: 1})
	}
	return f
}

// client runs a program as one in a pod, and returns what it printed, on both streams, and its exit status.
func (w *world) client(name string, args ...string) (printed string, status int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), clientWithin)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + w.t.TempDir()}
	c.Env = append(c.Env, w.env...)
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(w.cgroup.Fd())}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	// A subtest's goroutine is in no namespace of ours; a child stays in that of the thread that started it.
	must(w.t, w.clients.Do(c.Start))
	err := c.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		w.t.Fatalf("%s: not done within %v; it printed:\n%s", strings.Join(c.Args, " "), clientWithin, &out)
	case errors.As(err, &exit):
		return out.String(), exit.ExitCode()
	case err != nil:
		w.t.Fatal(err)
	}
	return out.String(), 0
}

// prints runs a client that must end well, and wants each of the texts in what it printed.
func (w *world) prints(want []string, name string, args ...string) string {
	w.t.Helper()
	printed, status := w.client(name, args...)
	if status != 0 {
		w.t.Errorf("%s %s: exit status %d", filepath.Base(name), strings.Join(args, " "), status)
	}
	wants(w.t, printed, want...)
	return printed
}

func wants(t *testing.T, printed string, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(printed, text) {
			t.Errorf("no %q in:\n%s", text, printed)
		}
	}
}

// server starts a program on the servers' machine until the test ends.
func (w *world) server(name string, args ...string) {
	w.t.Helper()
	c := exec.Command(name, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	must(w.t, w.servers.Do(c.Start))
	w.t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // killed: always an error
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", strings.Join(c.Args, " "), &out)
		}
	})
}

// need finds a program, or says which package has it.
func need(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		testutil.Missing(t, fmt.Sprintf("needs %s: apt install %s, or run `make setup` as root", name, pkg))
	}
	return path
}

// compile builds a C program of testdata.
func compile(t *testing.T, compiler, pkg, source string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c"))
	c := exec.Command(need(t, compiler, pkg), "-Wall", "-Werror", "-O1", "-static", "-o", out, filepath.Join("testdata", source))
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(c.Args, " "), err, said)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

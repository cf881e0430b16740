package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/cli/kernel"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// TestBPFAgreesWithBpftool: with real maps, filled by real connections, every list has what bpftool, which
// knows nothing of strait, reads by the maps' own type information.
func TestBPFAgreesWithBpftool(t *testing.T) {
	tool := bpftool{t, findBpftool(t), filepath.Join(testutil.BPFFS(t), "strait")}
	connectThrough(t, tool.pins)
	frontends := map[int]l4.Addr{}
	for _, e := range tool.dump("services") {
		frontends[e.Value.number("index")] = e.Key.addr("addr", "port")
	}

	services := listOf[kernel.BPFService](t, tool.pins, "services")
	same(t, "services", services, tool.services(frontends))
	same(t, "backends", listOf[kernel.BPFBackend](t, tool.pins, "backends"), tool.backends(frontends))
	same(t, "slots", listOf[kernel.BPFSlot](t, tool.pins, "slots"), tool.slots(frontends))
	affinity := listOf[kernel.BPFAffinity](t, tool.pins, "affinity")
	for i := range affinity {
		if a := &affinity[i]; a.IdleSeconds < 0 || a.IdleSeconds > 120 || math.Abs(a.IdleSeconds+a.LeftSeconds-600) > 1e-6 {
			t.Errorf("affinity: %+v, of 600 seconds", *a)
		}
		affinity[i].IdleSeconds, affinity[i].LeftSeconds = 0, 0 // the clock is no part of the map
	}
	same(t, "affinity", affinity, tool.affinity())
	sockets := listOf[kernel.BPFSocket](t, tool.pins, "sockets")
	stored := func(s kernel.BPFSocket) bool { return s.Overflow }
	if !slices.ContainsFunc(sockets, stored) {
		t.Error("no socket has a second record")
	}
	same(t, "sockets", slices.DeleteFunc(sockets, stored), tool.sockets())

	// What was done is known besides: the lists must not agree on nothing.
	var connects, refused uint64
	for _, s := range services {
		connects, refused = connects+s.Connects, refused+s.Refused
	}
	if connects != 12 || refused != 2 {
		t.Errorf("%d connections and %d refused, want 12 and 2", connects, refused)
	}
}

// enter moves the test process, with all its threads, into a cgroup.
func enter(t *testing.T, cgroup string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		t.Fatal(err)
	}
}

// balance attaches a load balancer to a cgroup until the test ends.
func balance(t *testing.T, pins, cgroup string, frontends ...datapath.Frontend) {
	t.Helper()
	cfg := socklb.Config{Pins: pins, Cgroup: cgroup, AllowVirtualRoot: true, MaxFrontends: 64, MaxBackends: 1024, MaxSockets: 1024}
	lb, err := socklb.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lb.Close(); err != nil {
			t.Error(err)
		}
		if err := socklb.CleanUp(cfg); err != nil {
			t.Error(err)
		}
	})
	if err := problem.Strict(lb.Reconcile(frontends, true)); err != nil {
		t.Fatal(err)
	}
}

// connectThrough fills maps: with 7 TCP connections over IPv4 (one of a weight of 1:3), 2 over IPv6 and one that
// is affine, a UDP socket that sends to two frontends, and two connections that are refused.
func connectThrough(t *testing.T, pins string) {
	t.Helper()
	cgroup := testutil.Cgroup(t)
	enter(t, cgroup)
	testutil.NetNS(t)
	four := []datapath.Backend{listenTCP(t, "127.0.0.1", 1), listenTCP(t, "127.0.0.2", 3)}
	six := []datapath.Backend{listenTCP(t, "::1", 5)}
	udp := []datapath.Backend{{IP: netip.MustParseAddr("127.0.0.3"), Port: 53, Weight: 1}}
	balance(t, pins, cgroup,
		datapath.Frontend{Addr: frontend("10.96.0.1:80/TCP"), Backends: four},
		datapath.Frontend{Addr: frontend("[fd00::1]:80/TCP"), Backends: six},
		datapath.Frontend{Addr: frontend("10.96.0.2:80/TCP"), Backends: four, AffinitySeconds: 600},
		datapath.Frontend{Addr: frontend("10.96.0.3:80/TCP")},
		datapath.Frontend{Addr: frontend("10.96.0.1:53/UDP"), Backends: udp},
		datapath.Frontend{Addr: frontend("10.96.0.2:53/UDP"), Backends: udp},
	)
	for to, n := range map[string]int{"10.96.0.1:80": 7, "[fd00::1]:80": 2, "10.96.0.2:80": 1} {
		for range n {
			dial(t, to)
		}
	}
	for range 2 {
		if conn, err := net.Dial("tcp", "10.96.0.3:80"); err == nil {
			conn.Close()
			t.Error("a frontend without a backend took a connection")
		}
	}
	sendTo(t, "10.96.0.1:53", "10.96.0.2:53", "10.96.0.1:53")
}

// listenTCP is a backend that takes connections until the test ends.
func listenTCP(t *testing.T, ip string, weight uint32) datapath.Backend {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	at := netip.MustParseAddrPort(l.Addr().String())
	return datapath.Backend{IP: at.Addr(), Port: at.Port(), Weight: weight}
}

// dial keeps a connection open until the test ends, so that its record stays.
func dial(t *testing.T, to string) {
	t.Helper()
	conn, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
}

// sendTo sends a datagram to each, from one socket that stays open until the test ends.
func sendTo(t *testing.T, to ...string) {
	t.Helper()
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	for _, a := range to {
		if _, err := conn.WriteToUDPAddrPort([]byte("?"), netip.MustParseAddrPort(a)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOptOutOfRealPins: a cgroup is left alone from the command on until its undo, as printed.
func TestOptOutOfRealPins(t *testing.T) {
	pins := filepath.Join(testutil.BPFFS(t), "strait")
	outer := testutil.Cgroup(t)
	inner := filepath.Join(outer, "inner", "most")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	enter(t, inner)
	testutil.NetNS(t)
	balance(t, pins, outer, datapath.Frontend{Addr: frontend("10.96.0.1:80/TCP"), Backends: []datapath.Backend{listenTCP(t, "127.0.0.1", 1)}})
	strait := func(args ...string) string {
		t.Helper()
		e := world(args...).on("/nonexistent/s").with("STRAIT_PINS", pins)
		e.kernel = kernel.Real()
		out := e.run(t)
		if out.code != cli.ExitOK {
			t.Fatalf("%q: %+v", args, out)
		}
		return out.stdout
	}
	served := func(want bool) {
		t.Helper()
		conn, err := net.Dial("tcp", "10.96.0.1:80")
		if err == nil {
			conn.Close()
		}
		if (err == nil) != want {
			t.Errorf("served %v, want %v: %v", err == nil, want, err)
		}
	}
	cgroup := filepath.Dir(inner)
	served(true)
	strait("opt-out", "add", cgroup, "--dry-run")
	served(true)
	out := strait("opt-out", "add", cgroup)
	served(false)
	if list := strait("opt-out", "list"); !strings.Contains(list, cgroup+"  1\n") {
		t.Errorf("not listed with this process: %s", list)
	}
	_, undo, _ := strings.Cut(out, "undo  strait ")
	strait(strings.Fields(undo)...)
	served(true)
}

// listOf runs a command on real pins.
func listOf[T kernel.BPFItem](t *testing.T, pins, list string) []T {
	t.Helper()
	e := world("bpf", list, "--pins", pins, "-o", "json").on("/nonexistent/s")
	e.kernel = kernel.Real()
	out := e.run(t)
	var answer kernel.BPFAnswer[T]
	if err := json.Unmarshal([]byte(out.stdout), &answer); err != nil {
		t.Fatalf("%s: %v: %s", list, err, out.stderr)
	}
	return answer.Items
}

// same compares lists in any order.
func same[T any](t *testing.T, name string, got, want []T) {
	t.Helper()
	lines := func(items []T) (out []string) {
		for _, item := range items {
			out = append(out, fmt.Sprintf("%+v", item))
		}
		slices.Sort(out)
		return out
	}
	g, w := lines(got), lines(want)
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s:\nstrait  %q\nbpftool %q", name, g, w)
	}
	if len(g) == 0 {
		t.Errorf("%s: the list is empty", name)
	}
}

// TestRealPinsErrors: the kernel's errors about wrong pins are distinguished.
func TestRealPinsErrors(t *testing.T) {
	dir := testutil.BPFFS(t)
	e := world("bpf", "services", "--pins", filepath.Join(dir, "none")).on("/nonexistent/s")
	e.kernel = kernel.Real()
	if got := e.run(t); got.code != cli.ExitUnknown || !bytes.Contains([]byte(got.stderr), []byte("this version of strait has no maps pinned at "+dir)) {
		t.Errorf("%+v", got)
	}
}

// TestPinsOfRoot: the error of another user names who may read pins that exist.
func TestPinsOfRoot(t *testing.T) {
	pins := filepath.Join(testutil.BPFFS(t), "strait")
	balance(t, pins, testutil.Cgroup(t), datapath.Frontend{Addr: frontend("10.96.0.1:80/TCP")})
	for _, command := range []string{"bpf services", "opt-out list"} {
		e := world(append(strings.Fields(command), "--pins", pins)...).on("/nonexistent/s")
		e.kernel = kernel.Real()
		if got := e.run(t); got.code != cli.ExitOK {
			t.Fatalf("%s as root: %+v", command, got)
		}
		done := make(chan result)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends here, still nobody's
			const nobody = 65534
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
				t.Errorf("become nobody: %v", errno)
			}
			done <- e.run(t)
		}()
		got := <-done
		if got.code != cli.ExitUnknown || !strings.Contains(got.stderr, "only root can\n  try  run the same command as root (sudo)") {
			t.Errorf("%s as nobody: %+v", command, got)
		}
	}
}

package gossip

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/testutil"
)

// Environment of the processes that this test binary starts of itself.
const (
	envInside = "STRAIT_TEST_INSIDE" // in a network namespace of its own: run the test here
	envDaemon = "STRAIT_TEST_DAEMON" // be a daemon: "CLUSTER NODE ADDRESS SEED"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(envDaemon); spec != "" {
		beDaemon(strings.Fields(spec))
		return
	}
	// The tests wait more than they work, so more of them run at a time than there are processors.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "6") // as test/setup/gotest.sh gives it
	}
	os.Exit(m.Run())
}

// view is what a daemon process prints at every change.
type view struct {
	Contacts map[string]string
	Dead     []string
	Records  int
}

func beDaemon(spec []string) {
	bind := netip.MustParseAddrPort(spec[2])
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	g, err := New(Config{Self: origin(spec[0], spec[1]), Bind: bind, Seeds: spec[3:], Keys: testKeys, Log: log})
	if err != nil {
		panic(err)
	}
	d := &daemon{Gossip: g}
	d.say(1)
	go func() {
		for range g.Changed() {
			s := g.State()
			v := view{Contacts: map[string]string{}}
			for r := range s.Nodes() {
				v.Contacts[r.Origin.String()] = s.Contacts.Get(r.Origin).String()
				v.Records++
				if s.Dead(r.Origin) {
					v.Dead = append(v.Dead, r.Origin.String())
				}
			}
			_ = json.NewEncoder(os.Stdout).Encode(v)
		}
	}()
	if err := g.Run(context.Background()); err != nil {
		panic(err)
	}
}

// machine is a network namespace, held by a process that sleeps, and a daemon process in it.
type machine struct {
	origin clustermesh.Origin
	addr   netip.AddrPort
	link   string // the end of its cable at the switch
	holder *exec.Cmd
	daemon *exec.Cmd

	mu   sync.Mutex
	last view
	dead map[string]time.Time // when a node was first seen dead
}

func (m *machine) now() view {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *machine) follow(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var v view
		if json.Unmarshal(lines.Bytes(), &v) != nil {
			continue
		}
		m.mu.Lock()
		m.last = v
		for _, o := range v.Dead {
			if m.dead[o].IsZero() {
				m.dead[o] = time.Now()
			}
		}
		m.mu.Unlock()
	}
}

// TestMachines runs three clusters of two real daemons in namespaces on a switch, and lets a daemon die,
// a machine die, and a cluster be cut off.
func TestMachines(t *testing.T) {
	t.Parallel()
	if os.Getenv(envInside) == "" {
		inOwnNetwork(t)
		return
	}
	run(t, "ip", "link", "set", "lo", "up")
	for _, bridge := range []string{"sw0", "sw1"} {
		run(t, "ip", "link", "add", bridge, "type", "bridge")
		run(t, "ip", "link", "set", bridge, "up")
	}
	var ms []*machine
	for i := range 6 {
		o := origin([]string{"east", "west", "eu"}[i/2], fmt.Sprintf("n%d", i%2+1))
		ms = append(ms, boot(t, i, o, "10.9.0.1:7946"))
	}
	for _, m := range ms {
		eventually(t, m.origin.String()+" hears all", func() bool { return m.hears(ms, "alive") })
	}
	east, west2, eu := ms[0], ms[3], ms[4:]

	t.Log("a daemon is killed: its machine is quiet, not dead")
	kill(t, west2.daemon)
	for _, m := range ms {
		if m != west2 {
			eventually(t, "quiet", func() bool { return m.now().Contacts[west2.origin.String()] == "quiet" })
		}
	}
	west2.run(t, "10.9.0.1:7946")
	for _, m := range ms {
		eventually(t, "all alive again", func() bool { return m.hears(ms, "alive") })
	}
	none(t, ms)

	t.Log("a cluster is cut off: no node is dead anywhere")
	for _, m := range eu {
		run(t, "ip", "link", "set", m.link, "master", "sw1")
	}
	eventually(t, "the cut is noticed", func() bool {
		return east.now().Contacts["eu/n1"] == "silent" && east.now().Contacts["eu/n2"] == "silent" &&
			eu[0].now().Contacts["east/n1"] == "silent" && eu[0].now().Contacts["west/n2"] == "silent"
	})
	time.Sleep(3 * time.Second) // time for a wrong withdrawal to happen
	none(t, ms)
	for _, m := range eu {
		run(t, "ip", "link", "set", m.link, "master", "sw0")
	}
	for _, m := range ms {
		took := eventually(t, "all alive after the cut", func() bool { return m.hears(ms, "alive") })
		t.Logf("%s: healed after %s", m.origin, took)
	}
	none(t, ms)

	t.Log("a machine dies: it is dead everywhere")
	began := time.Now()
	run(t, "ip", "link", "set", west2.link, "down")
	kill(t, west2.daemon)
	for _, m := range ms {
		if m == west2 {
			continue
		}
		eventually(t, "dead", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return !m.dead[west2.origin.String()].IsZero() })
		t.Logf("%s: dead after %s", m.origin, m.dead[west2.origin.String()].Sub(began).Round(time.Millisecond))
	}
	run(t, "ip", "link", "set", west2.link, "up")
	west2.run(t, "10.9.0.1:7946")
	for _, m := range ms {
		eventually(t, "the machine is back", func() bool { return m.hears(ms, "alive") && len(m.now().Dead) == 0 })
	}
}

func none(t *testing.T, ms []*machine) {
	t.Helper()
	for _, m := range ms {
		m.mu.Lock()
		if len(m.dead) > 0 {
			t.Fatalf("%s called dead: %v", m.origin, m.dead)
		}
		m.mu.Unlock()
	}
}

func (m *machine) hears(ms []*machine, contact string) bool {
	v := m.now()
	for _, other := range ms {
		if v.Contacts[other.origin.String()] != contact {
			return false
		}
	}
	return true
}

// inOwnNetwork runs the calling test once more, in a network namespace that nothing else uses.
func inOwnNetwork(t *testing.T) {
	testutil.NeedRoot(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), envInside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
}

// boot makes a machine: a namespace with one cable to the switch.
func boot(t *testing.T, i int, o clustermesh.Origin, seed string) *machine {
	t.Helper()
	m := &machine{
		origin: o, link: fmt.Sprintf("port%d", i), dead: map[string]time.Time{},
		addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)}), 7946),
	}
	m.holder = exec.Command("sleep", "600")
	m.holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := m.holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(t, m.holder) })
	pid := fmt.Sprint(m.holder.Process.Pid)
	run(t, "ip", "link", "add", m.link, "type", "veth", "peer", "name", "eth0", "netns", pid)
	run(t, "ip", "link", "set", m.link, "master", "sw0", "up")
	run(t, "nsenter", "-t", pid, "-n", "ip", "addr", "add", m.addr.Addr().String()+"/24", "dev", "eth0")
	run(t, "nsenter", "-t", pid, "-n", "ip", "link", "set", "eth0", "up")
	run(t, "nsenter", "-t", pid, "-n", "ip", "link", "set", "lo", "up")
	m.run(t, seed)
	return m
}

// run starts the machine's daemon.
func (m *machine) run(t *testing.T, seed string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m.daemon = exec.Command("nsenter", "-t", fmt.Sprint(m.holder.Process.Pid), "-n", self)
	m.daemon.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %s", envDaemon, m.origin.Cluster, m.origin.Node, m.addr, seed))
	m.daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := m.daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if testing.Verbose() && os.Getenv("STRAIT_TEST_LOG") != "" {
		m.daemon.Stderr = os.Stderr
	}
	if err := m.daemon.Start(); err != nil {
		t.Fatal(err)
	}
	daemon := m.daemon
	t.Cleanup(func() { kill(t, daemon) })
	go m.follow(out)
}

func kill(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if c.ProcessState == nil {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

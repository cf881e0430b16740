package wireguard_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/route"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/testutil"
)

// TestKilledDaemon: the tunnel survives a daemon that is killed, with all of its session and group.
func TestKilledDaemon(t *testing.T) { eachMode(t, testKilledDaemon) }

func testKilledDaemon(t *testing.T, mode wireguard.Kind) {
	nodes := newNodes(t, 2, mode)
	a, b := nodes[0], nodes[1]
	b.open(t, a)
	b.echo(t)
	cmd := exec.Command("/proc/self/exe", "daemon", a.cfg.Device, a.cfg.KeyFile, string(mode))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, a.Do(cmd.Start))
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "open\n" {
		t.Fatalf("the daemon printed %q", line)
	}
	a.open(t, b) // from here, as the daemon would: a second client is as good
	c := a.connect(t, b.pod)
	must(t, unix.Kill(-cmd.Process.Pid, unix.SIGKILL))
	_ = cmd.Wait() // "signal: killed"
	must(t, c.echo("the daemon is dead"))
	must(t, a.connect(t, b.pod).echo("a new connection"))
	if !a.dev.Alive() {
		t.Error("the device died with the daemon")
	}
}

// TestStarterGone: a tunnel process whose daemon died before it was ready ends, and makes nothing. Later,
// neither the next daemon nor a cleanup would find it.
func TestStarterGone(t *testing.T) {
	testutil.NeedTun(t)
	testutil.NetNS(t)
	var pipe [2]int
	must(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	must(t, unix.Close(pipe[0]))
	name := fmt.Sprintf("stw%d-g", os.Getpid()%10_000_000)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := wireguard.RunTunnel(ctx, wireguard.TunnelArgs{Device: name, ReadyFD: pipe[1]})
	if err == nil || ctx.Err() != nil {
		t.Errorf("it serves the device until it is ended: %v", err)
	}
	if _, err := netlink.LinkByName(name); err == nil {
		t.Error("it made the device")
	}
}

// TestWatchSeesKilledTunnel: the loss of the TUN's carrier tells the daemon at once, without a resync.
func TestWatchSeesKilledTunnel(t *testing.T) {
	a, _ := pair(t, wireguard.Userspace)
	changed := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Do(func() error { return a.router.Watch(ctx, changed) }) }()
	<-changed // it listens
	for len(changed) > 0 {
		<-changed
	}
	begin := time.Now()
	must(t, unix.Kill(a.pid(t), unix.SIGKILL))
	select {
	case <-changed:
		t.Log("seen after", time.Since(begin))
	case <-time.After(5 * time.Second):
		t.Error("no signal")
	}
	cancel()
	must(t, <-ended)
}

// TestKilledTunnel: with the process killed, connects wait; after a Reconcile all is as before.
func TestKilledTunnel(t *testing.T) {
	mode := wireguard.Auto // adopts the TUN that is left, instead of asking the kernel again
	if len(modes(t)) > 1 {
		mode = wireguard.Userspace
	}
	a, b := pair(t, mode)
	c, c6 := a.connect(t, b.pod), a.connect(t, b.pod6)
	a.dev.Shape(1380, a.cfg.Addr) // a narrower underlay
	a.reconcile(t, b)
	a.kill(t)
	if a.dev.Alive() {
		t.Error("alive with its process killed")
	}
	for _, addr := range []string{b.pod, b.pod6} {
		var netErr net.Error
		if _, err := a.dial(addr, 500*time.Millisecond); !errors.As(err, &netErr) || !netErr.Timeout() {
			t.Errorf("connect to %s without a tunnel process: %v, want a time-out", addr, err)
		}
	}
	waiting := make(chan error, 1)
	go func() {
		late, err := a.dial(b.pod, 20*time.Second)
		if err == nil {
			err = errors.Join(late.echo("waited"), late.Close())
		}
		waiting <- err
	}()
	begin := time.Now()
	a.reconcile(t, b)
	t.Log("restarted in", time.Since(begin))
	must(t, <-waiting)
	must(t, c.echo("an old connection goes on"))
	must(t, c6.echo("and so does that over IPv6"))
	if !a.dev.Alive() {
		t.Error("not alive after the restart")
	}
	must(t, a.Do(func() error {
		l, err := netlink.LinkByName(a.cfg.Device)
		if err == nil && l.Attrs().MTU != 1380 {
			err = fmt.Errorf("MTU %d after the restart, want 1380", l.Attrs().MTU)
		}
		return err
	}))

	// The same when daemon and process are killed both.
	a.kill(t)
	must(t, a.dev.Close())
	a.open(t, b)
	must(t, c.echo("after both"))
}

// TestDeletedTunnel: with the device deleted the process ends by itself, and a new one comes.
func TestDeletedTunnel(t *testing.T) {
	a, b := pair(t, wireguard.Userspace)
	c := a.connect(t, b.pod)
	pid := a.pid(t)
	must(t, a.Do(func() error {
		l, err := netlink.LinkByName(a.cfg.Device)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	}))
	testutil.Eventually(t, 5*time.Second, func() error {
		if a.dev.Alive() {
			return errors.New("alive without a device")
		}
		return nil
	})
	a.reconcile(t, b)
	if now := a.pid(t); now == pid {
		t.Error("the process survived its device")
	}
	must(t, c.echo("after the device was deleted"))
}

func TestHangingTunnelIsReplaced(t *testing.T) {
	a, b := pair(t, wireguard.Userspace)
	pid := a.pid(t)
	must(t, unix.Kill(pid, unix.SIGSTOP))
	defer unix.Kill(pid, unix.SIGCONT)
	testutil.Eventually(t, 5*time.Second, func() error { return stopped(pid) }) // one thread after the other does
	begin := time.Now()
	if a.dev.Alive() {
		t.Error("alive although its process is stopped")
	}
	if d := time.Since(begin); d > 8*time.Second {
		t.Errorf("Alive took %v", d)
	}
	a.reconcile(t, b)
	if now := a.pid(t); now == pid {
		t.Error("the stopped process is still in charge")
	}
	must(t, a.connect(t, b.pod).echo("hello"))
}

// stopped returns an error while a thread of a process still runs, by proc_pid_stat(5).
func stopped(pid int) error {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		text, _ := os.ReadFile(path) // a thread that has ended runs no longer
		if _, after, ok := strings.Cut(string(text), ") "); ok && !strings.HasPrefix(after, "T") {
			return fmt.Errorf("thread %s: state %.1s", path, after)
		}
	}
	return err
}

// TestStaleSockets: the socket files of killed processes, our own and another's, do no harm.
func TestStaleSockets(t *testing.T) {
	nodes := newNodes(t, 1, wireguard.Userspace)
	a := nodes[0]
	must(t, os.MkdirAll("/var/run/wireguard", 0o755))
	for _, path := range []string{a.socket(), strings.TrimSuffix(a.socket(), ".sock") + "x.sock"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		must(t, err)
		l.SetUnlinkOnClose(false)
		must(t, l.Close())
		t.Cleanup(func() { os.Remove(path) })
	}
	a.open(t)
	if !a.dev.Alive() {
		t.Error("not alive")
	}

	// A socket that another process deletes comes back, served by the same process.
	pid := a.pid(t)
	must(t, os.Remove(a.socket()))
	testutil.Eventually(t, 5*time.Second, func() error {
		if !a.dev.Alive() {
			return errors.New("no socket")
		}
		return nil
	})
	if now := a.pid(t); now != pid {
		t.Errorf("process %d, was %d", now, pid)
	}

	must(t, a.Do(func() error { return wireguard.CleanUp(a.cfg) }))
	must(t, a.Do(func() error { return wireguard.CleanUp(a.cfg) }))
	if err := unix.Kill(pid, 0); err == nil {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if !bytes.Contains(stat, []byte(") Z ")) { // we are its parent, and have not looked
			t.Errorf("process %d still runs: %s", pid, stat)
		}
	}
	if _, err := os.Stat(a.socket()); err == nil {
		t.Error("the socket is left")
	}
	if _, err := os.Stat(a.cfg.KeyFile); err != nil {
		t.Error("the key is gone:", err)
	}
	must(t, a.Do(func() error { return route.CleanUp(route.Config{Device: a.cfg.Device}) }))
	if err := a.Do(func() error { _, err := netlink.LinkByName(a.cfg.Device); return err }); err == nil {
		t.Error("the TUN is left")
	}
}

func TestOpenErrors(t *testing.T) {
	nodes := newNodes(t, 2, wireguard.Userspace)
	a, b := nodes[0], nodes[1]
	open := func(n *node, change func(*wireguard.Config)) error {
		cfg := n.cfg
		change(&cfg)
		return n.Do(func() error {
			d, err := wireguard.Open(t.Context(), cfg, n.router)
			if err == nil {
				return errors.Join(d.Close())
			}
			return err
		})
	}
	wants := func(err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want it to say %q", err, text)
		}
	}
	wants(open(a, func(c *wireguard.Config) { c.Mode = "fast" }), `wireguard mode "fast"`)
	wants(open(a, func(c *wireguard.Config) { c.Device = "../evil" }), `wireguard device "../evil"`)
	wants(open(a, func(c *wireguard.Config) { c.TunnelCommand = nil }), "strait-tunnel")
	wants(open(a, func(c *wireguard.Config) { c.TunnelCommand = []string{"/proc/self/exe", "-test.run=^$"} }), "exited without a message")
	wants(open(a, func(c *wireguard.Config) { c.TunnelCommand = []string{"/nonexistent"} }), "no such file")
	wants(open(a, func(c *wireguard.Config) { c.Device = "eth0" }), "eth0")

	// A port that is taken.
	var l net.PacketConn
	must(t, a.Do(func() (err error) { l, err = net.ListenPacket("udp", ":51820"); return err }))
	wants(open(a, func(*wireguard.Config) {}), "use UDP port 51820")
	l.Close()

	// The other node with the same device name.
	a.open(t)
	wants(open(b, func(c *wireguard.Config) { c.Device = a.cfg.Device }), "another network namespace")
	if !a.dev.Alive() {
		t.Error("the other node's tunnel was hurt")
	}
}

// TestExternalTunnel: a process that another program starts is waited for, adopted, and neither started nor ended with
// the device; when it is replaced, the connections through the tunnel go on.
func TestExternalTunnel(t *testing.T) {
	nodes := newNodes(t, 2, wireguard.Userspace)
	a, b := nodes[0], nodes[1]
	b.open(t, a)
	b.echo(t)
	a.cfg.TunnelCommand = nil
	supervise := func() *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", append([]string{"tunnel"}, wireguard.TunnelArgs{Device: a.cfg.Device}.Flags()...)...)
		must(t, a.Do(cmd.Start))
		return cmd
	}
	first := make(chan *exec.Cmd, 1)
	time.AfterFunc(300*time.Millisecond, func() { first <- supervise() })
	a.open(t, b)
	process := <-first
	if pid := a.pid(t); pid != process.Process.Pid {
		t.Fatalf("process %d serves the device, want the supervisor's, %d", pid, process.Process.Pid)
	}
	c := a.connect(t, b.pod)
	must(t, c.echo("through it"))

	must(t, a.dev.Close()) // the daemon ends, another comes
	must(t, c.echo("without a daemon"))
	a.open(t, b)
	if pid := a.pid(t); pid != process.Process.Pid {
		t.Errorf("the second daemon has process %d, want %d", pid, process.Process.Pid)
	}

	must(t, process.Process.Kill()) // its pod is replaced
	_ = process.Wait()
	process = supervise()
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	a.reconcile(t, b)
	must(t, c.echo("through its successor"))
}

package wireguard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/route"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// TestMain makes the test binary serve as the tunnel program, as straitd does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "tunnel" {
		os.Exit(tunnel(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "daemon" {
		os.Exit(daemon(os.Args[2], os.Args[3], os.Args[4]))
	}
	os.Exit(m.Run())
}

// daemon opens the device, prints "open", and waits to be killed.
func daemon(device, keyFile, mode string) int {
	d, err := wireguard.Open(context.Background(), wireguard.Config{
		Device: device, Port: 51820, KeyFile: keyFile, Mode: wireguard.Kind(mode), TunnelCommand: []string{"/proc/self/exe", "tunnel"},
	}, route.New(route.Config{Device: device}))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer d.Close()
	fmt.Println("open")
	select {}
}

// modes are the kinds of device that can be tested here: without a kernel device on a kernel that has no
// WireGuard.
func modes(t *testing.T) []wireguard.Kind {
	t.Helper()
	testutil.NeedTun(t)
	err := emptyNetns(t).Do(func() error { return route.New(route.Config{}).AddWireGuard("probe") })
	switch {
	case err == nil:
		return []wireguard.Kind{wireguard.Userspace, wireguard.Kernel}
	case !errors.Is(err, errors.ErrUnsupported):
		t.Fatal(err)
	}
	return []wireguard.Kind{wireguard.Userspace}
}

// eachMode runs a test on each kind of device.
func eachMode(t *testing.T, test func(t *testing.T, mode wireguard.Kind)) {
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) { test(t, mode) })
	}
}

func tunnel(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a, err := wireguard.ParseTunnelArgs(args)
	if err == nil {
		a.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		err = wireguard.RunTunnel(ctx, a)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// node is one machine: a namespace with an underlay address, a pod address and a tunnel.
type node struct {
	*testutil.Namespace
	cfg      wireguard.Config
	router   *route.Router
	dev      *wireguard.Device
	private  key.Private
	underlay netip.AddrPort
	pod, pod6,
	prefix, prefix6 string
	log string
}

// newNodes makes nodes whose namespaces are joined by a bridge, with tunnels not yet opened.
func newNodes(t *testing.T, n int, mode wireguard.Kind) []*node {
	t.Helper()
	testutil.NeedTun(t)
	testutil.NetNS(t) // the bridge's
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	must(t, netlink.LinkAdd(bridge))
	must(t, netlink.LinkSetUp(bridge))
	nodes := make([]*node, n)
	for i := range nodes {
		nodes[i] = newNode(t, i+1, bridge, mode)
	}
	return nodes
}

func newNode(t *testing.T, i int, bridge netlink.Link, mode wireguard.Kind) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{
		underlay: netip.MustParseAddrPort(fmt.Sprintf("192.168.7.%d:51820", i)),
		pod:      fmt.Sprintf("10.%d.0.1", i), prefix: fmt.Sprintf("10.%d.0.0/16", i),
		pod6: fmt.Sprintf("fd00:%d::1", i), prefix6: fmt.Sprintf("fd00:%d::/64", i),
		log: filepath.Join(dir, "tunnel.log"),
	}
	n.cfg = wireguard.Config{
		Device:        fmt.Sprintf("stt%d-%d", os.Getpid()%10_000_000, i),
		Port:          n.underlay.Port(),
		MTU:           1420,
		Addr:          netip.MustParsePrefix(n.pod + "/32"),
		Mode:          mode,
		KeyFile:       filepath.Join(dir, "state", "key"),
		TunnelCommand: []string{"/proc/self/exe", "tunnel"},
		TunnelLog:     n.log,
		Log:           slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	var err error
	n.private, err = wireguard.LoadKey(n.cfg.KeyFile)
	must(t, err)
	n.router = route.New(route.Config{Device: n.cfg.Device})
	n.Namespace = emptyNetns(t)
	name := fmt.Sprintf("port%d", i)
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: bridge.Attrs().Index},
		PeerName:  "eth0", PeerNamespace: netlink.NsFd(n.FD()),
	}))
	port, err := netlink.LinkByName(name)
	must(t, err)
	must(t, netlink.LinkSetUp(port))
	must(t, n.Do(func() error {
		return errors.Join(addAddr("eth0", n.underlay.Addr().String()+"/24"), addAddr("lo", n.pod6+"/128"))
	}))
	t.Cleanup(func() {
		if n.dev != nil {
			n.dev.Close()
		}
		if err := n.Do(func() error { return wireguard.CleanUp(n.cfg) }); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			text, _ := os.ReadFile(n.log)
			t.Logf("log of %s:\n%s", n.cfg.Device, text)
		}
	})
	return n
}

// emptyNetns makes a namespace without staying in it.
func emptyNetns(t *testing.T) *testutil.Namespace {
	t.Helper()
	home, err := os.Open("/proc/thread-self/ns/net")
	must(t, err)
	defer home.Close()
	ns := testutil.NetNS(t)
	must(t, unix.Setns(int(home.Fd()), unix.CLONE_NEWNET))
	return ns
}

func addAddr(link, addr string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(addr)
	if err != nil {
		return err
	}
	a.Flags = unix.IFA_F_NODAD
	return errors.Join(netlink.AddrAdd(l, a), netlink.LinkSetUp(l))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens the tunnel and gives the node the peers and their routes.
func (n *node) open(t *testing.T, peers ...*node) {
	t.Helper()
	must(t, n.Do(func() (err error) {
		n.dev, err = wireguard.Open(t.Context(), n.cfg, n.router)
		return err
	}))
	n.reconcile(t, peers...)
}

func (n *node) reconcile(t *testing.T, peers ...*node) {
	t.Helper()
	want, routes := wanted(n, peers...)
	must(t, n.Do(func() error {
		return errors.Join(problem.Strict(n.dev.Reconcile(want, true)), problem.Strict(n.router.Reconcile(routes, true)))
	}))
}

func wanted(n *node, peers ...*node) (want []datapath.Peer, routes []datapath.Route) {
	for _, p := range peers {
		want = append(want, p.peer())
		routes = append(routes,
			datapath.Route{Dst: netip.MustParsePrefix(p.prefix), Src: netip.MustParseAddr(n.pod)},
			datapath.Route{Dst: netip.MustParsePrefix(p.prefix6), Src: netip.MustParseAddr(n.pod6)})
	}
	return want, routes
}

func (n *node) peer() datapath.Peer {
	return datapath.Peer{
		Name: n.cfg.Device, Key: n.private.Public(), Underlay: n.underlay,
		AllowedIPs: []netip.Prefix{netip.MustParsePrefix(n.prefix), netip.MustParsePrefix(n.prefix6)},
	}
}

// pid of the process that serves the node's TUN, from the socket table of the kernel.
func (n *node) pid(t *testing.T) int {
	t.Helper()
	c, err := net.Dial("unix", n.socket())
	must(t, err)
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	must(t, err)
	var cred *unix.Ucred
	must(t, raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }))
	must(t, err)
	return int(cred.Pid)
}

func (n *node) socket() string { return "/var/run/wireguard/" + n.cfg.Device + ".sock" }

// kill -9 the tunnel process and wait until it is gone, or a zombie until its parent looks.
func (n *node) kill(t *testing.T) {
	t.Helper()
	pid := n.pid(t)
	must(t, unix.Kill(pid, unix.SIGKILL))
	testutil.Eventually(t, 5*time.Second, func() error {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			return errors.New("still there")
		}
		return nil
	})
}

// echo serves TCP echo on the pod addresses, port 7, saying first who called.
func (n *node) echo(t *testing.T) {
	t.Helper()
	for _, addr := range []string{n.pod, n.pod6} {
		var l net.Listener
		must(t, n.Do(func() (err error) {
			l, err = net.Listen("tcp", net.JoinHostPort(addr, "7"))
			return err
		}))
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					fmt.Fprintln(c, netip.MustParseAddrPort(c.RemoteAddr().String()).Addr())
					io.Copy(c, c)
				}()
			}
		}()
	}
}

// call is a connection to a node's echo server.
type call struct {
	net.Conn
	r *bufio.Reader
	// from is the caller's address as the server saw it.
	from string
}

func (n *node) dial(addr string, timeout time.Duration) (*call, error) {
	var c net.Conn
	err := n.Do(func() (err error) {
		c, err = (&net.Dialer{Timeout: timeout}).Dial("tcp", net.JoinHostPort(addr, "7"))
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	r := bufio.NewReader(c)
	from, err := r.ReadString('\n')
	return &call{c, r, strings.TrimSpace(from)}, err
}

// connect takes its time: wireguard-go may need 15 seconds to notice that its own address is gone.
func (n *node) connect(t *testing.T, addr string) *call {
	t.Helper()
	c, err := n.dial(addr, 40*time.Second)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// echo sends text and wants it back.
func (c *call) echo(text string) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c.Conn, text)
		sent <- err
	}()
	got := make([]byte, len(text))
	_, err := io.ReadFull(c.r, got)
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	if string(got) != text {
		return errors.New("the echo differs")
	}
	return nil
}

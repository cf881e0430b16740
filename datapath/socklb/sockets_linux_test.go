package socklb

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// family is how an application writes an address: as IPv4, IPv6, or IPv4 on an IPv6 socket.
type family struct {
	name     string
	domain   int
	vip      netip.Addr
	pod      netip.Addr
	nowhere  netip.Addr // no frontend
	sockaddr func(netip.AddrPort) unix.Sockaddr
}

var families = []family{
	{"IPv4", unix.AF_INET, netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.9"), sockaddr4},
	{"IPv6", unix.AF_INET6, netip.MustParseAddr("fd00:96::1"), netip.IPv6Loopback(), netip.IPv6Loopback(), sockaddr6},
	{"mapped", unix.AF_INET6, netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.9"), sockaddr6},
}

func sockaddr4(a netip.AddrPort) unix.Sockaddr {
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}

func sockaddr6(a netip.AddrPort) unix.Sockaddr {
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

func addrPortOf(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// client is a socket in the application's hands: plain system calls, nothing cached.
type client struct {
	t  testing.TB
	f  family
	fd int
}

func newClient(t testing.TB, f family, kind int) *client {
	t.Helper()
	fd, err := unix.Socket(f.domain, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	// An answer that does not come fails the test instead of hanging it; on a busy machine it may come late.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		t.Fatal(err)
	}
	return &client{t, f, fd}
}

// close closes the socket, unless it is closed already.
func (c *client) close() {
	if c.fd < 0 {
		return
	}
	if err := unix.Close(c.fd); err != nil {
		c.t.Error(err)
	}
	c.fd = -1
}

func (c *client) connect(to netip.AddrPort) error {
	for {
		err := unix.Connect(c.fd, c.f.sockaddr(to))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (c *client) send(to netip.AddrPort) error {
	return unix.Sendto(c.fd, []byte("?"), 0, c.f.sockaddr(to))
}

func (c *client) write() error { _, err := unix.Write(c.fd, []byte("?")); return err }

// receive returns what came and from whom, as recvfrom() shows it.
func (c *client) receive() (text string, from netip.AddrPort, err error) {
	b := make([]byte, 64)
	for {
		n, sa, err := unix.Recvfrom(c.fd, b, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", netip.AddrPort{}, err
		}
		return string(b[:n]), addrPortOf(sa), nil
	}
}

func (c *client) peer() (netip.AddrPort, error) {
	sa, err := unix.Getpeername(c.fd)
	return addrPortOf(sa), err
}

// serve answers every connection or datagram on at with its own address, until the test ends. Port 0
// takes a free one.
func serve(t testing.TB, proto l4.Proto, at netip.AddrPort) netip.AddrPort {
	t.Helper()
	if proto == l4.UDP {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		at := conn.LocalAddr().(*net.UDPAddr).AddrPort()
		go answerUDP(conn, at.String())
		return at
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	at = l.Addr().(*net.TCPAddr).AddrPort()
	go answerTCP(l, at.String())
	return at
}

// echo answers everything that arrives on at with its own address, again and again on one connection.
func echo(t testing.TB, proto l4.Proto, at netip.AddrPort) netip.AddrPort {
	t.Helper()
	if proto == l4.UDP {
		return serve(t, proto, at)
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	at = l.Addr().(*net.TCPAddr).AddrPort()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go echoTCP(conn, at.String())
		}
	}()
	return at
}

func echoTCP(conn net.Conn, text string) {
	defer conn.Close()
	b := make([]byte, 64)
	for {
		if _, err := conn.Read(b); err != nil {
			return
		}
		_, _ = conn.Write([]byte(text)) // a lost answer shows in the client
	}
}

func answerUDP(conn *net.UDPConn, text string) {
	b := make([]byte, 64)
	for {
		_, from, err := conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = conn.WriteToUDPAddrPort([]byte(text), from) // a lost answer shows in the client
		}
	}
}

func answerTCP(l *net.TCPListener, text string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text)) // a lost answer shows in the client
		conn.Close()
	}
}

// TestSockets: each kind of socket, in each form of address, reaches a backend and sees the frontend.
func TestSockets(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for _, f := range families {
		var want []datapath.Frontend
		pods := map[l4.Proto]netip.AddrPort{}
		for _, proto := range []l4.Proto{l4.TCP, l4.UDP} {
			pods[proto] = serve(t, proto, netip.AddrPortFrom(f.pod, 0))
			want = append(want, datapath.Frontend{Addr: l4.New(f.vip, 80, proto), Backends: one(pods[proto])},
				datapath.Frontend{Addr: l4.New(f.vip, 81, proto), Backends: backends()})
		}
		reconcile(t, l, want...)
		vip := netip.AddrPortFrom(f.vip, 80)
		empty := netip.AddrPortFrom(f.vip, 81)
		t.Run(f.name+"/TCP", func(t *testing.T) { testConnected(t, f, unix.SOCK_STREAM, vip, pods[l4.TCP]) })
		t.Run(f.name+"/UDP connected", func(t *testing.T) { testConnected(t, f, unix.SOCK_DGRAM, vip, pods[l4.UDP]) })
		t.Run(f.name+"/UDP unconnected", func(t *testing.T) { testUnconnected(t, f, vip, pods[l4.UDP]) })
		t.Run(f.name+"/refused", func(t *testing.T) {
			if !has(l.features, featureSetRetval) {
				t.Skip("this kernel refuses in another way: TestRefuseWithoutRetval")
			}
			testRefused(t, f, empty)
		})
		t.Run(f.name+"/direct", func(t *testing.T) { testDirect(t, f, pods) })
		t.Run(f.name+"/untouched", func(t *testing.T) { testUntouched(t, f, pods[l4.UDP]) })
		t.Run(f.name+"/dissolved", func(t *testing.T) { testDissolved(t, f, vip, pods) })
	}
}

func one(at netip.AddrPort) []datapath.Backend {
	return []datapath.Backend{{IP: at.Addr(), Port: at.Port(), Weight: 1}}
}

func testConnected(t *testing.T, f family, kind int, vip, pod netip.AddrPort) {
	c := newClient(t, f, kind)
	defer c.close()
	if err := c.connect(vip); err != nil {
		t.Fatal(err)
	}
	if peer, err := c.peer(); err != nil || peer != vip {
		t.Errorf("getpeername: %v, %v; want %v", peer, err, vip)
	}
	if kind == unix.SOCK_DGRAM {
		if err := c.write(); err != nil {
			t.Fatal(err)
		}
	}
	text, from, err := c.receive()
	if err != nil || text != pod.String() {
		t.Errorf("answer %q, %v; want %v", text, err, pod)
	}
	if kind == unix.SOCK_DGRAM && from != vip {
		t.Errorf("recvfrom shows %v, want %v", from, vip)
	}
}

func testUnconnected(t *testing.T, f family, vip, pod netip.AddrPort) {
	c := newClient(t, f, unix.SOCK_DGRAM)
	defer c.close()
	for range 3 {
		if err := c.send(vip); err != nil {
			t.Fatal(err)
		}
		if text, from, err := c.receive(); err != nil || text != pod.String() || from != vip {
			t.Errorf("answer %q from %v, %v; want %v from %v", text, from, err, pod, vip)
		}
	}
}

func testRefused(t *testing.T, f family, empty netip.AddrPort) {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
		c := newClient(t, f, kind)
		defer c.close()
		if err := c.connect(empty); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("connect, socket type %d: %v", kind, err)
		}
	}
	c := newClient(t, f, unix.SOCK_DGRAM)
	defer c.close()
	if err := c.send(empty); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("sendto: %v", err)
	}
}

// Who dials the pod sees the pod, though it is a frontend's backend.
func testDirect(t *testing.T, f family, pods map[l4.Proto]netip.AddrPort) {
	testConnected(t, f, unix.SOCK_STREAM, pods[l4.TCP], pods[l4.TCP])
	testConnected(t, f, unix.SOCK_DGRAM, pods[l4.UDP], pods[l4.UDP])
	testUnconnected(t, f, pods[l4.UDP], pods[l4.UDP])
}

// Another port, address or protocol of a frontend's is none.
func testUntouched(t *testing.T, f family, pod netip.AddrPort) {
	other := serve(t, l4.TCP, netip.AddrPortFrom(f.nowhere, 0))
	testConnected(t, f, unix.SOCK_STREAM, other, other)
	c := newClient(t, f, unix.SOCK_STREAM)
	defer c.close()
	if err := c.connect(netip.AddrPortFrom(f.vip, 82)); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("port 82 of the frontend: %v, want unreachable", err)
	}
	if err := c.connect(pod); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("TCP to the UDP pod: %v", err)
	}
}

// A socket that is disconnected by AF_UNSPEC and dials elsewhere sees what it dials.
func testDissolved(t *testing.T, f family, vip netip.AddrPort, pods map[l4.Proto]netip.AddrPort) {
	for kind, proto := range map[int]l4.Proto{unix.SOCK_STREAM: l4.TCP, unix.SOCK_DGRAM: l4.UDP} {
		elsewhere := serve(t, proto, netip.AddrPortFrom(f.pod, 0))
		c := newClient(t, f, kind)
		defer c.close()
		for _, to := range []netip.AddrPort{vip, elsewhere, vip} {
			if err := c.connect(to); err != nil {
				t.Fatalf("%s connect %v: %v", proto, to, err)
			}
			if peer, err := c.peer(); err != nil || peer != to {
				t.Errorf("%s getpeername: %v, %v; want %v", proto, peer, err, to)
			}
			if err := disconnect(c.fd); err != nil {
				t.Fatal(err)
			}
			if peer, err := c.peer(); !errors.Is(err, unix.ENOTCONN) {
				t.Errorf("%s getpeername when disconnected: %v, %v", proto, peer, err)
			}
		}
		if proto == l4.UDP {
			if err := c.send(vip); err != nil {
				t.Fatal(err)
			}
			if text, from, err := c.receive(); err != nil || from != vip || text != pods[proto].String() {
				t.Errorf("sendto after disconnect: %q from %v, %v", text, from, err)
			}
		}
	}
}

// disconnect is connect() to an address of family AF_UNSPEC.
func disconnect(fd int) error {
	var unspec [16]byte
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(ptr(&unspec)), uintptr(len(unspec)))
	if errno != 0 {
		return fmt.Errorf("disconnect: %w", errno)
	}
	return nil
}

// TestRefuseWithoutRetval is the way of kernels before 6.1, forced on this one.
func TestRefuseWithoutRetval(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	l := opened(t, cfg)
	reload(t, l, cfg, featureSetRetval)
	for _, f := range families {
		reconcile(t, l, datapath.Frontend{Addr: l4.New(f.vip, 81, l4.TCP)}, datapath.Frontend{Addr: l4.New(f.vip, 81, l4.UDP)})
		empty := netip.AddrPortFrom(f.vip, 81)
		tcp, udp := newClient(t, f, unix.SOCK_STREAM), newClient(t, f, unix.SOCK_DGRAM)
		if err := tcp.connect(empty); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s TCP connect: %v", f.name, err)
		}
		if err := udp.send(empty); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s sendto: %v", f.name, err)
		}
		if err := udp.connect(empty); err != nil {
			t.Errorf("%s UDP connect: %v", f.name, err)
		}
		deadline := time.Now().Add(2 * time.Second)
		err := udp.write()
		for err == nil && time.Now().Before(deadline) {
			err = udp.write() // the refusal comes back through loopback
		}
		want := error(unix.ECONNREFUSED)
		if f.name == "mapped" {
			want = unix.EINVAL // such a socket sends by address every time
		}
		if !errors.Is(err, want) {
			t.Errorf("%s connected UDP write: %v", f.name, err)
		}
		tcp.close()
		udp.close()
	}
}

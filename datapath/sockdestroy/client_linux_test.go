package sockdestroy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// form is how an application writes an address: as IPv4, IPv6, or IPv4 on an IPv6 socket.
type form string

const (
	v4     form = "IPv4"
	v6     form = "IPv6"
	mapped form = "mapped"
)

var forms = []form{v4, v6, mapped}

// place names one of the backends that each network namespace has.
type place int

const (
	old place = iota
	new_
	stuck // takes one TCP connection and lets the others wait
)

func (f form) vip() netip.AddrPort {
	if f == v6 {
		return netip.MustParseAddrPort("[fd00:96::1]:53")
	}
	return netip.MustParseAddrPort("10.96.0.1:53")
}

func (f form) backend(p place) netip.AddrPort {
	if f == v6 {
		return []netip.AddrPort{netip.MustParseAddrPort("[::1]:5301"), netip.MustParseAddrPort("[::1]:5302"), netip.MustParseAddrPort("[::1]:5303")}[p]
	}
	return []netip.AddrPort{netip.MustParseAddrPort("127.0.0.2:5300"), netip.MustParseAddrPort("127.0.0.3:5300"), netip.MustParseAddrPort("127.0.0.4:5300")}[p]
}

func (f form) sockaddr(a netip.AddrPort) unix.Sockaddr {
	if f == v4 {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

// Call is what a client is asked to do.
type Call struct {
	FD   int
	Kind int // SOCK_STREAM or SOCK_DGRAM
	Form form
	To   netip.AddrPort
	N    int
}

// Client is an application in a network namespace of its own, which also holds the backends. Plain system
// calls, nothing cached.
type Client struct {
	stop   chan struct{}
	storm  sync.WaitGroup
	opened []int
	err    error
}

// Start opens connected sockets, one after the other and at most N, until Stop.
func (s *Client) Start(c Call, _ *int) error {
	s.stop, s.opened, s.err = make(chan struct{}), nil, nil
	s.storm.Go(func() {
		for len(s.opened) < c.N && s.err == nil {
			select {
			case <-s.stop:
				return
			default:
			}
			var fd int
			s.err = s.Open(c, &fd)
			s.opened = append(s.opened, fd)
		}
	})
	return nil
}

// Stop ends Start and returns the sockets.
func (s *Client) Stop(_ Call, fds *[]int) error {
	close(s.stop)
	s.storm.Wait()
	*fds = s.opened
	return s.err
}

// Wrong returns the answers of those sockets of Start that have a peer other than the backend N, and closes all.
func (s *Client) Wrong(c Call, wrong *[]string) error {
	for _, fd := range s.opened {
		var answer string
		err := s.Ask(Call{FD: fd}, &answer)
		if !errors.Is(err, unix.EDESTADDRREQ) && answer != v4.backend(place(c.N)).String() {
			*wrong = append(*wrong, fmt.Sprint(answer, err))
		}
		unix.Close(fd)
	}
	return nil
}

// Open makes a socket and connects it if there is an address.
func (*Client) Open(c Call, fd *int) (err error) {
	domain := unix.AF_INET6
	if c.Form == v4 {
		domain = unix.AF_INET
	}
	if *fd, err = unix.Socket(domain, c.Kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	c.FD = *fd
	// An answer that does not come fails the test instead of hanging it; on a busy machine it may come late.
	if err := unix.SetsockoptTimeval(*fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		return err
	}
	if !c.To.IsValid() {
		return nil
	}
	if err := (*Client)(nil).Connect(c, nil); err != nil {
		return errors.Join(err, unix.Close(c.FD))
	}
	return nil
}

// Stick listens at the stuck backend, and fills its queue.
func (s *Client) Stick(c Call, _ *int) error {
	var fd int
	at := c.Form.backend(stuck)
	if err := s.Open(Call{Kind: unix.SOCK_STREAM, Form: c.Form}, &fd); err != nil {
		return err
	}
	if err := unix.Bind(fd, c.Form.sockaddr(at)); err != nil {
		return err
	}
	if err := unix.Listen(fd, 0); err != nil {
		return err
	}
	return s.Open(Call{Kind: unix.SOCK_STREAM, Form: c.Form, To: at}, &fd)
}

// Connect connects the socket.
func (*Client) Connect(c Call, _ *int) error {
	for {
		err := unix.Connect(c.FD, c.Form.sockaddr(c.To))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Ask sends a word and returns what comes back: the address of the backend.
func (*Client) Ask(c Call, answer *string) (err error) {
	if c.To.IsValid() {
		err = unix.Sendto(c.FD, []byte("?"), 0, c.Form.sockaddr(c.To))
	} else {
		_, err = unix.Write(c.FD, []byte("?"))
	}
	if err != nil {
		return err
	}
	return (*Client)(nil).Receive(c, answer)
}

// Receive waits for what comes.
func (*Client) Receive(c Call, answer *string) error {
	b := make([]byte, 64)
	for {
		n, _, err := unix.Recvfrom(c.FD, b, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		*answer = string(b[:max(n, 0)])
		return err
	}
}

// Close closes the socket.
func (*Client) Close(c Call, _ *int) error { return unix.Close(c.FD) }

// Many opens N sockets that are connected directly.
func (*Client) Many(c Call, fds *[]int) error {
	for range c.N {
		var fd int
		if err := (*Client)(nil).Open(c, &fd); err != nil {
			return err
		}
		*fds = append(*fds, fd)
	}
	return nil
}

// CloseAll closes the sockets.
func (*Client) CloseAll(fds []int, _ *int) error {
	for _, fd := range fds {
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// Dead counts those of the sockets that have lost their peer.
func (*Client) Dead(fds []int, n *int) error {
	for _, fd := range fds {
		if _, err := unix.Getpeername(fd); err != nil {
			*n++
		}
	}
	return nil
}

// runClient is the client process.
func runClient() {
	if err := testutil.LoopbackUp(); err != nil {
		fmt.Fprintln(os.Stderr, "set lo up:", err)
		os.Exit(1)
	}
	if err := roomForFiles(1 << 14); err != nil {
		fmt.Fprintln(os.Stderr, "raise number of files:", err)
		os.Exit(1)
	}
	for _, f := range []form{v4, v6} {
		for _, p := range []place{old, new_} {
			if err := serve(f.backend(p)); err != nil {
				fmt.Fprintln(os.Stderr, "serve:", err)
				os.Exit(1)
			}
		}
	}
	s := rpc.NewServer()
	if err := s.Register(&Client{}); err != nil {
		fmt.Fprintln(os.Stderr, "register:", err)
		os.Exit(1)
	}
	s.ServeConn(pipes{os.Stdin, os.Stdout})
}

// roomForFiles raises the limit where it is lower; that needs the capability SYS_RESOURCE.
func roomForFiles(n uint64) error {
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &have); err != nil || have.Cur >= n {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: max(n, have.Max)})
}

// serve answers every word on a TCP connection and every datagram with its own address.
func serve(at netip.AddrPort) error {
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	go func() {
		b := make([]byte, 64)
		for {
			if _, from, err := udp.ReadFromUDPAddrPort(b); err == nil {
				_, _ = udp.WriteToUDPAddrPort([]byte(at.String()), from) // a lost answer shows in the client
			}
		}
	}()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			go func() {
				b := make([]byte, 64)
				for {
					if _, err := conn.Read(b); err != nil {
						conn.Close()
						return
					}
					_, _ = conn.Write([]byte(at.String()))
				}
			}()
		}
	}()
	return nil
}

type pipes struct {
	io.ReadCloser
	io.Writer
}

// pod is a client process as the test sees it.
type pod struct {
	t   testing.TB
	rpc *rpc.Client
	pid int
}

// newPod starts a client in a fresh network namespace, until the test ends.
func newPod(t testing.TB) *pod {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), clientEnv+"=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &pod{t, rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{out, in}), cmd.Process.Pid}
	t.Cleanup(func() {
		p.rpc.Close() // its standard input ends, and so does it
		if err := cmd.Wait(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("client: %v", err)
		}
	})
	return p
}

func (p *pod) call(method string, args, reply any) {
	p.t.Helper()
	if err := p.rpc.Call("Client."+method, args, reply); err != nil {
		p.t.Fatalf("%s %+v: %v", method, args, err)
	}
}

// socket is a socket of a pod.
type socket struct {
	*pod
	c Call
}

// open makes a socket; without to it is not connected.
func (p *pod) open(kind int, f form, to netip.AddrPort) *socket {
	p.t.Helper()
	c := Call{Kind: kind, Form: f, To: to}
	p.call("Open", c, &c.FD)
	c.To = netip.AddrPort{}
	return &socket{p, c}
}

// ask returns the backend that answered, or the error's text.
func (s *socket) ask() string { return s.askAt(netip.AddrPort{}) }

// receive waits for a datagram or an error, and returns its text.
func (s *socket) receive() string {
	s.t.Helper()
	var answer string
	if err := s.rpc.Call("Client.Receive", s.c, &answer); err != nil {
		return err.Error()
	}
	return answer
}

func (s *socket) askAt(to netip.AddrPort) string {
	s.t.Helper()
	c := s.c
	c.To = to
	var answer string
	if err := s.rpc.Call("Client.Ask", c, &answer); err != nil {
		return err.Error()
	}
	return answer
}

func (s *socket) connect(to netip.AddrPort) {
	s.t.Helper()
	c := s.c
	c.To = to
	s.call("Connect", c, nil)
}

func (s *socket) close() { s.t.Helper(); s.call("Close", s.c, nil) }

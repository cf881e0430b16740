package faults

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// podEnv lists the addresses of the backends of a process that is a pod.
const podEnv = "STRAIT_TEST_POD"

// pod is a process in a network namespace of its own, and in the cgroup of its machine. Its
// sockets are plain system calls. The backends are in the namespace too, so they always answer.
type pod struct {
	t   *testing.T
	rpc *rpc.Client
}

// socket is a UDP socket of a pod.
type socket struct {
	*pod
	fd int
}

// newPod starts a pod with UDP servers at the addresses, until the test ends.
func (m *machine) newPod(t *testing.T, backends ...netip.AddrPort) *pod {
	t.Helper()
	cgroup, err := os.Open(m.cgroup)
	must(t, err)
	defer cgroup.Close()
	cmd := exec.Command(os.Args[0])
	texts := []string{}
	for _, b := range backends {
		texts = append(texts, b.String())
	}
	cmd.Env = append(os.Environ(), podEnv+"="+strings.Join(texts, " "))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &pod{t, rpc.NewClient(pipes{out, in})}
	t.Cleanup(func() {
		p.rpc.Close() // its standard input ends, and so does it
		if err := cmd.Wait(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("pod: %v", err)
		}
	})
	return p
}

// open connects a UDP socket.
func (p *pod) open(to netip.AddrPort) socket {
	p.t.Helper()
	s := socket{pod: p}
	must(p.t, p.rpc.Call("Sockets.Open", to, &s.fd))
	return s
}

// openTo connects a UDP socket to a frontend, and draws until it has the backend.
func (p *pod) openTo(frontend, backend netip.AddrPort) socket {
	p.t.Helper()
	for range 200 {
		s := p.open(frontend)
		if s.ask() == backend.String() {
			return s
		}
		must(p.t, p.rpc.Call("Sockets.Close", s.fd, nil))
	}
	p.t.Fatalf("%s never leads to %s", frontend, backend)
	return socket{}
}

// ask sends a datagram and returns who answered, or the error's text.
func (s socket) ask() (answer string) {
	if err := s.rpc.Call("Sockets.Ask", s.fd, &answer); err != nil {
		return err.Error()
	}
	return answer
}

// isClosed is nil if strait has closed the socket, and otherwise says who answers.
func (s socket) isClosed() error {
	if got := s.ask(); got != unix.EDESTADDRREQ.Error() {
		return fmt.Errorf("a send says %q, want %q", got, unix.EDESTADDRREQ.Error())
	}
	return nil
}

// Sockets is what a pod offers.
type Sockets struct{}

// Open makes a connected UDP socket.
func (Sockets) Open(to netip.AddrPort, fd *int) (err error) {
	if *fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	// An answer that does not come fails the test instead of hanging it.
	return errors.Join(unix.SetsockoptTimeval(*fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}),
		unix.Connect(*fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}))
}

// Ask sends a word and returns the answer.
func (Sockets) Ask(fd int, answer *string) error {
	if _, err := unix.Write(fd, []byte("?")); err != nil {
		return err
	}
	b := make([]byte, 64)
	for {
		n, err := unix.Read(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		*answer = string(b[:max(n, 0)])
		return err
	}
}

// Close closes a socket.
func (Sockets) Close(fd int, _ *int) error { return unix.Close(fd) }

// runPod is the pod's process.
func runPod(backends string) error {
	if err := testutil.LoopbackUp(); err != nil {
		return err
	}
	for _, text := range strings.Fields(backends) {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			return err
		}
		if err := answerAt(at); err != nil {
			return fmt.Errorf("serve %s: %w", at, err)
		}
	}
	s := rpc.NewServer()
	if err := s.Register(Sockets{}); err != nil {
		return err
	}
	s.ServeConn(pipes{os.Stdin, os.Stdout})
	return nil
}

// answerAt answers each datagram with the address itself, which it gives to lo.
func answerAt(at netip.AddrPort) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: at.Addr().AsSlice(), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrReplace(lo, addr); err != nil {
		return err
	}
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
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
	return nil
}

// pipes are closed by closing what is written: the other side's input ends.
type pipes struct {
	io.Reader
	io.WriteCloser
}

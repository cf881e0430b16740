package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// Long-lived clients have their own frontends, with a server that keeps connections open.
const (
	steadyNumber = 100
	steadyPort   = 9090
	steadyTCP    = 40
	steadyUDP    = 10
)

// steadyFrontends returns the frontends with a new random set of backends on each call, so that
// connections outlive their backend's membership. An unconnected UDP socket would correctly move to
// another backend, which would look broken here, so clients only hold connected sockets.
func steadyFrontends() (out []datapath.Frontend) {
	for _, proto := range []l4.Proto{l4.TCP, l4.UDP} {
		f := frontendOf(l4.New(vip4(steadyNumber), servicePort, proto), overIPv4, steadyNumber, rand.Uint64N(1<<churnPods-1)+1)
		for i := range f.Backends {
			f.Backends[i].Port = steadyPort
		}
		out = append(out, f)
	}
	return out
}

// steady is one long-lived connection.
type steady struct {
	conn   net.Conn
	broken bool
}

// serveSteady starts servers that echo each byte, over TCP and UDP.
func (r *restarted) serveSteady() (stop func() error, err error) {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", steadyPort))
	if err != nil {
		return nil, err
	}
	// One socket for each pod, so that an answer comes from the address that the request went to.
	var wg sync.WaitGroup
	closers := []io.Closer{l}
	for pod := range churnPods {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(pod4(steadyNumber, pod), steadyPort)))
		if err != nil {
			return nil, err
		}
		closers = append(closers, c)
		wg.Go(func() { answerUDP(c) })
	}
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { _, _ = io.Copy(conn, conn); conn.Close() })
		}
	})
	return func() error {
		var errs []error
		for _, s := range r.steady {
			errs = append(errs, s.conn.Close())
		}
		for _, c := range closers {
			errs = append(errs, c.Close())
		}
		wg.Wait()
		return errors.Join(errs...)
	}, nil
}

func answerUDP(c *net.UDPConn) {
	b := make([]byte, 64)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = c.WriteToUDPAddrPort(b[:n], from) // the client notices a lost answer
		}
	}
}

// openSteady opens the long-lived connections.
func (r *restarted) openSteady() error {
	to := netip.AddrPortFrom(vip4(steadyNumber), servicePort).String()
	for n := range steadyTCP + steadyUDP {
		network := "tcp4"
		if n >= steadyTCP {
			network = "udp4"
		}
		conn, err := net.Dial(network, to)
		if err != nil {
			return fmt.Errorf("open long-lived connection: %w", err)
		}
		r.steady = append(r.steady, &steady{conn: conn})
	}
	return nil
}

// useSteady uses every long-lived connection in turn until stopped.
func (r *restarted) useSteady(stop *atomic.Bool) {
	for !stop.Load() {
		for _, s := range r.steady {
			if s.broken {
				continue
			}
			if err := s.use(); err != nil {
				s.broken = true
				r.broken.Add(1)
				r.tally.note("long-lived %s: %v", s.conn.RemoteAddr().Network(), err)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// use sends a byte and expects it back, and expects getpeername to still show the frontend.
func (s *steady) use() error {
	sent, got := [1]byte{byte(rand.IntN(256))}, [1]byte{}
	if err := s.conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := s.conn.Write(sent[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(s.conn, got[:]); err != nil {
		return err
	}
	if got != sent {
		return fmt.Errorf("sent %v, got %v", sent, got)
	}
	return s.checkPeer()
}

func (s *steady) checkPeer() error {
	control, err := s.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var peer unix.Sockaddr
	var peerErr error
	err = control.Control(func(fd uintptr) { peer, peerErr = unix.Getpeername(int(fd)) })
	if err := errors.Join(err, peerErr); err != nil {
		return err
	}
	if at, ok := peer.(*unix.SockaddrInet4); !ok || netip.AddrFrom4(at.Addr) != vip4(steadyNumber) {
		return fmt.Errorf("getpeername shows %v instead of the frontend", peer)
	}
	return nil
}

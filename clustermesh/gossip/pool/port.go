package pool

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// tlsHandshake is the first byte of a TLS stream. No memberlist stream begins with it: message
	// types are below 16, and a label is 244.
	tlsHandshake = 0x16
	// peekTimeout is how long a stream has to send its first byte.
	peekTimeout = 5 * time.Second
	// maxWaiting bounds the streams that have not sent anything yet.
	maxWaiting = 512
)

// port is memberlist's transport. It keeps from memberlist the TCP streams that are not its own, so
// that both kinds of streams can share one port.
type port struct {
	*memberlist.NetTransport
	members chan net.Conn // memberlist's own streams
	streams chan net.Conn // the others
	done    chan struct{}
	wg      sync.WaitGroup
}

// listen opens the sockets. The error says what to do about a port in use.
func listen(bind netip.AddrPort, logger *log.Logger) (*port, error) {
	inner, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
		BindAddrs: []string{bind.Addr().String()},
		BindPort:  int(bind.Port()),
		Logger:    logger,
	})
	if err != nil && strings.Contains(err.Error(), "address already in use") {
		return nil, fmt.Errorf("gossip: %s is in use by another process (another straitd?); stop it or choose another gossip port", bind)
	}
	if err != nil && strings.Contains(err.Error(), "cannot assign requested address") {
		return nil, fmt.Errorf("gossip: %s is not an address of this machine; correct the gossip bind address", bind)
	}
	if err != nil {
		return nil, fmt.Errorf("gossip: listen on %s: %w", bind, err)
	}
	p := &port{
		NetTransport: inner,
		members:      make(chan net.Conn),
		streams:      make(chan net.Conn),
		done:         make(chan struct{}),
	}
	p.wg.Go(p.sort)
	return p, nil
}

// StreamCh implements memberlist.Transport. It receives memberlist's own streams.
func (p *port) StreamCh() <-chan net.Conn { return p.members }

// Shutdown closes the sockets and waits until nothing uses them. Streams that were handed out stay
// open.
func (p *port) Shutdown() error {
	err := p.NetTransport.Shutdown()
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	p.wg.Wait()
	return err
}

func (p *port) sort() {
	waiting := make(chan struct{}, maxWaiting)
	for {
		select {
		case conn := <-p.NetTransport.StreamCh():
			select {
			case waiting <- struct{}{}:
				p.wg.Go(func() {
					p.sortOne(conn)
					<-waiting
				})
			default:
				conn.Close()
			}
		case <-p.done:
			return
		}
	}
}

// sortOne hands out a stream according to its first byte.
func (p *port) sortOne(conn net.Conn) {
	first, err := p.peek(conn)
	if err != nil {
		conn.Close() // a probe of the machine ends here: it connects and sends nothing
		return
	}
	conn = &peeked{Conn: conn, first: first}
	to := p.members
	if first[0] == tlsHandshake {
		to = p.streams
	}
	select {
	case to <- conn:
	case <-p.done:
		conn.Close()
	}
}

// peek reads the first byte of a stream. It ends early when the port is shut down.
func (p *port) peek(conn net.Conn) ([]byte, error) {
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-p.done:
			_ = conn.SetReadDeadline(time.Now())
		case <-ended:
		}
	})
	first := make([]byte, 1)
	err := errors.Join(conn.SetReadDeadline(time.Now().Add(peekTimeout)), read(conn, first))
	close(ended)
	watch.Wait() // or it could set the deadline of a stream that was handed out
	return first, errors.Join(err, conn.SetReadDeadline(time.Time{}))
}

// peeked is a stream whose first byte was read already.
type peeked struct {
	net.Conn
	first []byte
}

// Read returns the first byte, then the rest.
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 && len(b) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

func read(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	return err
}

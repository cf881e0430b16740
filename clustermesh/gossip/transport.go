package gossip

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// tlsHandshake is the first byte of a TLS stream; no memberlist stream begins with it (message types
	// are below 16, a label is 244).
	tlsHandshake = 0x16
	// peekTimeout is how long a stream has to say its first byte.
	peekTimeout = 5 * time.Second
	// maxWaiting bounds the streams that have not said anything yet.
	maxWaiting = 512
)

// transport is memberlist's, with the TCP streams that are not memberlist's taken out: one port for both.
type transport struct {
	*memberlist.NetTransport
	memberCh chan net.Conn
	records  func(net.Conn) // takes over record streams; must not block
	done     chan struct{}
	wg       sync.WaitGroup
}

// listen opens the sockets. The error says what to do about a port in use.
func listen(bind netip.AddrPort, logger *log.Logger, records func(net.Conn)) (*transport, error) {
	inner, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
		BindAddrs: []string{bind.Addr().String()},
		BindPort:  int(bind.Port()),
		Logger:    logger,
	})
	if err != nil && strings.Contains(err.Error(), "address already in use") {
		return nil, fmt.Errorf("gossip: %s is in use by another process (another straitd?): stop it or choose another gossip port", bind)
	}
	if err != nil && strings.Contains(err.Error(), "cannot assign requested address") {
		return nil, fmt.Errorf("gossip: %s is no address of this machine: correct the gossip bind address", bind)
	}
	if err != nil {
		return nil, fmt.Errorf("gossip: listen on %s: %w", bind, err)
	}
	t := &transport{
		NetTransport: inner,
		memberCh:     make(chan net.Conn),
		records:      records,
		done:         make(chan struct{}),
	}
	t.wg.Go(t.sort)
	return t, nil
}

// StreamCh gives memberlist its own streams.
func (t *transport) StreamCh() <-chan net.Conn { return t.memberCh }

// Shutdown closes the sockets and waits until nothing uses them. Record streams go on until their own end.
func (t *transport) Shutdown() error {
	err := t.NetTransport.Shutdown()
	select {
	case <-t.done:
	default:
		close(t.done)
	}
	t.wg.Wait()
	return err
}

func (t *transport) sort() {
	waiting := make(chan struct{}, maxWaiting)
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			select {
			case waiting <- struct{}{}:
				t.wg.Go(func() {
					t.sortOne(conn)
					<-waiting
				})
			default:
				conn.Close()
			}
		case <-t.done:
			return
		}
	}
}

// sortOne gives a stream to whom its first byte says.
func (t *transport) sortOne(conn net.Conn) {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-t.done:
			_ = conn.SetReadDeadline(time.Now())
		case <-stop:
		}
	}()
	first := make([]byte, 1)
	if err := errors.Join(conn.SetReadDeadline(time.Now().Add(peekTimeout)), readFull(conn, first)); err != nil {
		conn.Close() // a probe of the machine ends here: it connects and says nothing
		return
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		conn.Close()
		return
	}
	conn = &peeked{Conn: conn, first: first}
	if first[0] == tlsHandshake {
		t.records(conn)
		return
	}
	select {
	case t.memberCh <- conn:
	case <-t.done:
		conn.Close()
	}
}

// peeked is a stream whose first byte has been read already.
type peeked struct {
	net.Conn
	first []byte
}

// Read returns the byte that was read before, then the rest.
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 && len(b) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

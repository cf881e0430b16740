package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/meter"
)

const (
	// tlsHandshake is the first byte of a TLS stream. No memberlist stream begins with it: message
	// types are below 16, and a label is 244.
	tlsHandshake = 0x16
	// proofTimeout is how long a peer has to prove that it has the gossip key, and handshakeBytes
	// how much it may send until then: a handshake takes less than 2 KiB, and at most 18 KiB with the
	// statement of a node that has many prefixes.
	proofTimeout   = 5 * time.Second
	handshakeBytes = 32 << 10
)

// Secured is a TLS connection whose peer has proven that it has the gossip key.
type Secured struct {
	net.Conn
	// Members is set if the connection is memberlist's, and not a record stream.
	Members bool
}

// TLS makes and accepts TLS connections between daemons that have the gossip key.
type TLS interface {
	// Accept returns once the peer has proven that it has the key. On an error it closes nothing.
	Accept(ctx context.Context, raw net.Conn) (Secured, error)
	// Dial opens a connection for memberlist.
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// port is memberlist's transport. All TCP connections are TLS, and nothing that a peer sent is kept
// before the peer has proven that it has the gossip key: memberlist itself buffers megabytes before
// it decrypts. memberlist's connections and record streams share one port.
type port struct {
	*sockets
	tls     TLS
	refused func(member.Refusal, netip.Addr)
	known   func(netip.Addr) bool // whether an address is a member's
	packets *packets
	meter   *meter.Meter
	// Members keep room of their own, whatever strangers do.
	strangers, acquainted *rooms
	work, sent            budgets

	members chan net.Conn // memberlist's own streams
	streams chan net.Conn // the others
	ctx     context.Context
	stop    context.CancelFunc // nothing more is handed out
	wg      sync.WaitGroup
}

var _ memberlist.NodeAwareTransport = (*port)(nil)

// listen opens the sockets. The error contains what to do about a port in use.
func listen(cfg Config, known func(netip.Addr) bool) (*port, error) {
	bind := cfg.Bind
	packets, err := newPackets(cfg.Keys)
	if err != nil {
		return nil, err
	}
	inner, err := openSockets(bind)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("gossip: %s is in use by another process (another straitd?); stop it or choose another gossip port", bind)
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil, fmt.Errorf("gossip: %s is not an address of this machine; correct the gossip bind address", bind)
	}
	if err != nil {
		return nil, fmt.Errorf("gossip: listen on %s: %w", bind, err)
	}
	if known == nil {
		known = func(netip.Addr) bool { return false }
	}
	p := &port{
		sockets: inner, tls: cfg.TLS, refused: cfg.Refused, known: known,
		packets: packets, meter: cfg.Meter, strangers: newRooms(), acquainted: newRooms(),
		work: newBudgets(memberWork, strangerWork), sent: newBudgets(memberWork, strangerSent),
		members: make(chan net.Conn), streams: make(chan net.Conn),
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.wg.Go(func() { p.sockets.accept(p.ctx, p.enter) })
	p.wg.Go(func() { p.sockets.receive(p.ctx, p.sift) })
	return p, nil
}

// FinalAdvertiseAddr implements memberlist.Transport. strait always sets which address others dial.
func (p *port) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	a, err := netip.ParseAddr(ip)
	return a.Unmap().AsSlice(), port, err
}

// WriteTo implements memberlist.Transport.
func (p *port) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	now := time.Now()
	switch {
	case err != nil:
	case !p.sent.take(p.known(to.Addr().Unmap()), 1, now):
		p.refused(member.TooFast, to.Addr())
	default:
		var n int
		n, err = p.udp.WriteToUDPAddrPort(b, to)
		p.meter.Sent(n)
	}
	return now, err
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (p *port) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return p.WriteTo(b, a.Addr)
}

// StreamCh implements memberlist.Transport. It receives memberlist's own streams.
func (p *port) StreamCh() <-chan net.Conn { return p.members }

// DialTimeout implements memberlist.Transport.
func (p *port) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	conn, err := p.tls.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	v := &vetted{Conn: conn, packets: p.packets, large: func() {}}
	v.refused = func() { p.refused(member.Unusual, hostOf(conn.RemoteAddr())) }
	return v, nil
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (p *port) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return p.DialTimeout(a.Addr, timeout)
}

// Shutdown closes the sockets and waits until nothing uses them. Streams that were handed out stay
// open.
func (p *port) Shutdown() error {
	p.stop()
	err := p.close()
	p.wg.Wait()
	return err
}

// enter lets a connection wait at a door until its peer has proven that it has the key.
func (p *port) enter(conn net.Conn) {
	addr := hostOf(conn.RemoteAddr())
	door := p.rooms(addr).door
	in := door.admit(conn, addr)
	p.wg.Go(func() { p.acceptOne(conn, addr, door, in) })
}

// acceptOne hands out a connection whose peer has proven that it has the key, and closes others.
func (p *port) acceptOne(raw net.Conn, addr netip.Addr, door *door, in *visitor) {
	stop := context.AfterFunc(p.ctx, func() { raw.Close() })
	defer stop() // whatever becomes of the connection: until then the context keeps it in memory
	conn := &bounded{Conn: p.meter.Conn(raw), left: handshakeBytes}
	to, secured, why := p.judge(conn, func() { door.spoke(in) })
	crowded := door.leave(in)
	if to != nil && stop() && !crowded {
		if to == p.members {
			secured = p.vet(secured, addr)
		}
		select {
		case to <- secured:
			return
		case <-p.ctx.Done():
		}
	}
	conn.Close()
	if secured != nil {
		secured.Close() // it may have taken room
	}
	switch {
	case p.ctx.Err() != nil:
	case crowded:
		p.refused(member.Crowded, addr)
	case why != "":
		p.refused(why, addr)
	}
}

// rooms returns where connections of an address have room.
func (p *port) rooms(addr netip.Addr) *rooms {
	if p.known(addr) {
		return p.acquainted
	}
	return p.strangers
}

// vet returns one of memberlist's connections, which gives memberlist only what a daemon can have sent.
func (p *port) vet(conn net.Conn, addr netip.Addr) net.Conn {
	rooms := p.rooms(addr)
	in := rooms.members.admit(conn, addr)
	var large *visitor
	return &vetted{
		Conn: conn, packets: p.packets, label: true,
		large:   func() { large = rooms.large.admit(conn, addr) },
		refused: func() { p.refused(member.Unusual, addr) },
		closed: func() {
			rooms.members.leave(in)
			if large != nil {
				rooms.large.leave(large)
			}
		},
	}
}

// judge decides what becomes of a connection: to whom to hand it, or why it is refused. A peer that
// sends nothing at all and leaves is a probe of this machine, which is not refused. Spoke is called
// once it has sent something.
func (p *port) judge(conn *bounded, spoke func()) (to chan net.Conn, secured net.Conn, why member.Refusal) {
	ctx, cancel := context.WithTimeout(p.ctx, proofTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	if conn.SetDeadline(deadline) != nil {
		return nil, nil, ""
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil, member.Unproven
	} else if err != nil {
		return nil, nil, ""
	}
	spoke()
	rest := &peeked{Conn: conn, first: first}
	if first[0] != tlsHandshake {
		return nil, nil, member.NotTLS
	}
	s, err := p.tls.Accept(ctx, rest)
	if err != nil {
		return nil, nil, member.Unproven
	}
	conn.left = -1
	if s.Members {
		return p.members, unhurried(s.Conn), ""
	}
	return p.streams, unhurried(s.Conn), ""
}

// unhurried lifts the deadline of the handshake.
func unhurried(conn net.Conn) net.Conn {
	_ = conn.SetDeadline(time.Time{})
	return conn
}

package dns

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// FuzzServe gives the server arbitrary datagrams. It answers each at most once, with the id of the query, never
// answers an answer, and sends no more than the client accepts.
func FuzzServe(f *testing.F) {
	for _, qtype := range []string{"A", "SRV", "TXT", "ANY", "SOA", "AXFR"} {
		for _, size := range []uint16{0, 100, 1000, 65535} {
			q := ask("big.default.svc.clusterset.local.", qtype)
			if size > 0 {
				q.SetEdns0(size, true)
			}
			query, err := q.Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(query)
			f.Add(query[:len(query)-3])
			answer := slices.Clone(query)
			answer[2] |= 0x80
			f.Add(answer)
		}
	}
	s := New(Config{}, bigTable)
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) > dns.MinMsgSize {
			return // the server reads no more of a datagram
		}
		one := &onePacket{packet: packet}
		srv := s.listener(t.Context(), "udp")
		srv.PacketConn = one
		if err := srv.ActivateAndServe(); err != io.EOF {
			t.Fatal(err)
		}
		if len(one.answers) > 1 {
			t.Fatalf("%d answers", len(one.answers))
		}
		for _, a := range one.answers {
			checkServed(t, packet, a)
		}
	})
}

func checkServed(t *testing.T, packet, answer []byte) {
	t.Helper()
	q, r := new(dns.Msg), new(dns.Msg)
	if err := r.Unpack(answer); err != nil {
		t.Fatalf("an answer that cannot be read: %v", err)
	}
	most := dns.MinMsgSize
	if q.Unpack(packet) == nil {
		most = limit(q)
	}
	switch {
	case !r.Response || packet[2]&0x80 != 0:
		t.Errorf("not an answer to a query: %v", r)
	case [2]byte(answer) != [2]byte(packet):
		t.Errorf("the id is %x, and that of the query %x", answer[:2], packet[:2])
	case len(answer) > min(most, udpSize):
		t.Errorf("%d bytes for a client that accepts %d", len(answer), most)
	}
}

// onePacket is a socket to which one datagram comes.
type onePacket struct {
	mu      sync.Mutex
	packet  []byte
	read    bool
	answers [][]byte
}

var _ net.PacketConn = &onePacket{}

func (p *onePacket) ReadFrom(b []byte) (int, net.Addr, error) {
	if p.read {
		return 0, nil, io.EOF
	}
	p.read = true
	return copy(b, p.packet), p.LocalAddr(), nil
}

func (p *onePacket) WriteTo(b []byte, _ net.Addr) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(p.answers, slices.Clone(b))
	return len(b), nil
}

func (*onePacket) Close() error                     { return nil }
func (*onePacket) LocalAddr() net.Addr              { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 53} }
func (*onePacket) SetDeadline(time.Time) error      { return nil }
func (*onePacket) SetReadDeadline(time.Time) error  { return nil }
func (*onePacket) SetWriteDeadline(time.Time) error { return nil }

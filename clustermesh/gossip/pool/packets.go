package pool

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
)

// label is at the start of all that memberlist sends and receives.
const label = "strait"

// labelHeader is how memberlist writes the label.
var labelHeader = append([]byte{244, byte(len(label))}, label...)

// packets passes on datagrams that were encrypted with the gossip key and that a daemon can have sent,
// and drops others. Most of the others memberlist would drop too, but it writes a line of its log for
// each, and only there has which it was.
type packets struct {
	aeads atomic.Pointer[[]cipher.AEAD] // of all keys that are accepted
	out   chan *memberlist.Packet
}

func newPackets(keys gossipkey.Ring) (*packets, error) {
	p := &packets{out: make(chan *memberlist.Packet)}
	return p, p.rekey(keys)
}

func (p *packets) rekey(keys gossipkey.Ring) error {
	var aeads []cipher.AEAD
	for _, key := range keys {
		block, err := aes.NewCipher(key[:])
		if err != nil {
			return fmt.Errorf("gossip: use the key: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return fmt.Errorf("gossip: use the key: %w", err)
		}
		aeads = append(aeads, aead)
	}
	p.aeads.Store(&aeads)
	return nil
}

// why returns why a datagram is refused; empty if it is not.
func (p *packets) why(b []byte) member.Refusal {
	_, why := p.read(b)
	return why
}

// read returns how many messages a datagram has, or why it is refused.
func (p *packets) read(b []byte) (messages int, why member.Refusal) {
	sealed, ours := bytes.CutPrefix(b, labelHeader)
	if !ours {
		return 0, member.NotOurs
	}
	text, why := p.open(sealed, []byte(label))
	if why != "" {
		return 0, why
	}
	if messages = usual(text); messages == 0 {
		return 0, member.Unusual
	}
	return messages, ""
}

// open returns the text of what memberlist encrypted: a version, which only shows how the text was
// padded, and what AES-GCM wrote, which also covers some data beside it. A padded text, which daemons do
// not send, can make memberlist panic.
func (p *packets) open(sealed, beside []byte) (text []byte, why member.Refusal) {
	aeads := *p.aeads.Load()
	nonce := aeads[0].NonceSize()
	if len(sealed) < 1+nonce+aeads[0].Overhead() {
		return nil, member.NotOurs
	}
	for _, aead := range aeads {
		text, err := aead.Open(nil, sealed[1:1+nonce], sealed[1+nonce:], beside)
		switch {
		case err != nil:
		case sealed[0] != plainVersion:
			return nil, member.Unusual
		default:
			return text, ""
		}
	}
	return nil, member.OtherKey
}

// sift passes on a datagram that the gossip key encrypted, and that a daemon can have sent.
func (p *port) sift(b []byte, from netip.AddrPort, at time.Time) {
	p.meter.Received(len(b))
	messages, why := p.packets.read(b)
	if why == "" && !p.work.take(p.known(from.Addr()), messages, at) {
		why = member.TooFast
	}
	if why != "" {
		p.refused(why, from.Addr())
		return
	}
	packet := &memberlist.Packet{Buf: bytes.Clone(b), From: net.UDPAddrFromAddrPort(from), Timestamp: at}
	select {
	case p.packets.out <- packet:
	case <-p.ctx.Done():
	}
}

// PacketCh implements memberlist.Transport.
func (p *port) PacketCh() <-chan *memberlist.Packet { return p.packets.out }

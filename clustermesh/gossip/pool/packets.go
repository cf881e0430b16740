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

	"strait.io/strait/internal/gossipkey"
)

// label is at the start of all that memberlist sends and receives.
const label = "strait"

// labelHeader is how memberlist writes the label.
var labelHeader = append([]byte{244, byte(len(label))}, label...)

// packets passes on datagrams that were encrypted with the gossip key, and drops others. memberlist
// would drop them too, but writes a line of its log for each, and says only there which it was.
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

// why returns why a datagram is refused; empty if it is not. After the label come a version, which
// only says how the text was padded, and what AES-GCM wrote, which also covers the label.
func (p *packets) why(b []byte) Refusal {
	rest, ours := bytes.CutPrefix(b, labelHeader)
	aeads := *p.aeads.Load()
	nonce := aeads[0].NonceSize()
	if !ours || len(rest) < 1+nonce+aeads[0].Overhead() {
		return NotOurs
	}
	for _, aead := range aeads {
		if _, err := aead.Open(nil, rest[1:1+nonce], rest[1+nonce:], []byte(label)); err == nil {
			return ""
		}
	}
	return OtherKey
}

// sift passes on a datagram that the gossip key encrypted.
func (p *port) sift(b []byte, from netip.AddrPort, at time.Time) {
	if why := p.packets.why(b); why != "" {
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

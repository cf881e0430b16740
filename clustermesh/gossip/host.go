package gossip

import (
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
)

// largeMessage is the size, in bytes, above which messages are decoded one at a time.
const largeMessage = 64 << 10

// credentials are what this daemon proves on TLS connections besides that it has the gossip key: nothing
// if it has no keys.
func (g *Gossip) credentials() stream.Credentials {
	if !g.proves() {
		return stream.Credentials{}
	}
	return stream.Credentials{Key: g.cfg.Authority.Node.Signer(), Statement: func() []byte { return ask(g, (*node.Node).Statement) }}
}

// proves reports whether this daemon proves on TLS connections which node it is.
func (g *Gossip) proves() bool { return g.cfg.Authority != nil }

// host implements stream.Host for a Gossip.
type host struct{ *Gossip }

var _ stream.Host = host{}

// Addr implements stream.Host.
func (h host) Addr(o clustermesh.Origin) netip.AddrPort {
	return ask(h.Gossip, func(n *node.Node, now time.Time) netip.AddrPort { return n.Addr(o, now) })
}

// Missed implements stream.Host.
func (h host) Missed(o clustermesh.Origin, at netip.AddrPort) {
	h.do(func(n *node.Node, now time.Time) { n.Missed(o, at, now) })
}

// Admit implements stream.Host.
func (h host) Admit(p stream.Peer, addr string) (_ stream.Session, believed bool, err error) {
	shown := h.verify(p)
	s := &session{Gossip: h.Gossip}
	h.do(func(n *node.Node, now time.Time) { s.peer, believed, err = n.Answered(peerOf(p), shown, addr, now) })
	return s, believed, err
}

// Accept implements stream.Host.
func (h host) Accept(p stream.Peer, addr string) (stream.Session, error) {
	shown := h.verify(p)
	s, err := &session{Gossip: h.Gossip}, error(nil)
	h.do(func(n *node.Node, now time.Time) { s.peer, err = n.Opened(peerOf(p), shown, addr, now) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Connected implements stream.Host.
func (h host) Connected(to clustermesh.Origin, bothWays bool) {
	h.do(func(n *node.Node, now time.Time) { n.Connected(to, bothWays, now) })
}

// Dropped implements stream.Host.
func (h host) Dropped(to clustermesh.Origin) {
	h.do(func(n *node.Node, now time.Time) { n.Dropped(to, now) })
}

// WrongKey implements stream.Host.
func (h host) WrongKey(addr string) {
	h.do(func(n *node.Node, now time.Time) { n.WrongKey(addr, now) })
}

func (h host) noUDP(peer string) {
	h.do(func(n *node.Node, now time.Time) { n.NoUDP(peer, now) })
}

// peerOf returns a peer as the node sees it.
func peerOf(p stream.Peer) node.Peer {
	return node.Peer{Peer: p.Peer, Key: authority.PublicKey(p.Key), Statement: p.Statement}
}

// verify verifies what a peer shows, without the lock, because that takes time.
func (g *Gossip) verify(p stream.Peer) (shown node.Shown) {
	var pins authority.Pins
	g.do(func(n *node.Node, _ time.Time) { pins, shown.Generation = n.Pins() })
	shown.Stated = pins.Proves(p.Origin, authority.PublicKey(p.Key), p.Statement) == nil
	return shown
}

// session implements stream.Session.
type session struct {
	*Gossip
	peer *node.Session
}

var _ stream.Session = &session{}

// Receive implements stream.Session.
func (s *session) Receive(frame []byte) error {
	message, err := s.decode(frame)
	if err != nil {
		return err
	}
	for _, part := range replica.Parts(message) { // the lock is free between them
		s.do(func(_ *node.Node, now time.Time) { s.peer.Receive(part, now) })
	}
	return nil
}

// Trusted implements stream.Session.
func (s *session) Trusted() bool {
	return ask(s.Gossip, func(*node.Node, time.Time) bool { return s.peer.Trusted() })
}

// Close implements stream.Session.
func (s *session) Close() {
	s.do(func(_ *node.Node, now time.Time) { s.peer.Close(now) })
}

// decode decodes large messages one at a time. While it is decoded, a message takes several times
// its size in memory, and when the daemon starts, all peers send at once.
func (g *Gossip) decode(frame []byte) (replica.Message, error) {
	if len(frame) == 0 {
		return nil, nil // a heartbeat
	}
	if len(frame) > largeMessage {
		g.decoding.Lock()
		defer g.decoding.Unlock()
	}
	return replica.Decode(frame)
}

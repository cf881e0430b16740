package gossip

import (
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/trust"
)

// credentials are what this daemon proves on TLS connections besides that it has the gossip key: nothing
// if it has no keys.
func (g *Gossip) credentials() stream.Credentials {
	if !g.proves() {
		return stream.Credentials{}
	}
	return stream.Credentials{Key: g.cfg.Authority.Node.Signer(), Statement: func() []byte {
		g.mu.Lock()
		defer g.mu.Unlock()
		signed, err := g.trust.Statement(time.Now())
		if err != nil {
			g.log.Error("cannot show who this node is", "error", err)
		}
		return signed
	}}
}

// proves reports whether this daemon proves on TLS connections which node it is.
func (g *Gossip) proves() bool { return g.cfg.Authority != nil }

// shows reports whether what a peer shows proves that its key is its node's, and of which generation the
// pins are by which it does.
func (g *Gossip) shows(p stream.Peer) (stated bool, generation uint64) {
	g.mu.Lock()
	pins, generation := g.trust.Pins(), g.trust.Generation()
	g.mu.Unlock()
	return pins.Proves(p.Origin, authority.PublicKey(p.Key), p.Statement) == nil, generation
}

// peerOf returns a peer as package trust sees it.
func peerOf(p stream.Peer, stated bool) trust.Peer {
	return trust.Peer{Origin: p.Origin, Key: authority.PublicKey(p.Key), Stated: stated}
}

// impostor reports a peer that claims to be a node and does not prove it, one for each cluster. The lock is held.
func (g *Gossip) impostor(p stream.Peer, addr string) {
	key := "impostor " + string(p.Origin.Cluster)
	said := trust.ImpostorProblem(p.Origin, addr)
	if shown, any := g.problems.shown(key); any {
		said = shown // one example at a time: each change is a line of the log
	}
	g.problem(key, said, problemLife)
}

// session implements stream.Session.
type session struct {
	*Gossip
	peer stream.Peer
	addr string
	// stated says that what the peer shows proves its key, by the pins of a generation.
	stated     bool
	generation uint64
	first      authority.Belief // when the connection was made
	counted    bool             // by contacts
}

var _ stream.Session = &session{}

// Receive implements stream.Session. It passes a peer's message to the replica, which judges records by
// their seals. Only a peer that is believed to be its node is a sign of life of that node, or can say
// that it has everything; where clusters are pinned, no other cluster's can say that.
func (s *session) Receive(frame []byte) error {
	message, err := s.decode(frame)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	belief := s.belief()
	switch belief {
	case authority.Believed:
		s.heard()
	case authority.Impostor:
		s.impostor(s.peer, s.addr)
	}
	if message == nil {
		return nil
	}
	if belief != authority.Believed || s.trust.Pins() != nil && !s.trust.Pinned(s.peer.Origin.Cluster) {
		message = replica.Doubted(message)
	}
	synced := s.replica.Synced()
	s.apply(s.replica.Receive(s.peer.Origin, message))
	if !synced && s.replica.Synced() {
		s.changed.Poke()
	}
	return nil
}

// Believed implements stream.Session. A peer of a cluster that is not pinned proves nothing where others are.
func (s *session) Believed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.belief() == authority.Believed && (s.trust.Pins() == nil || s.trust.Pinned(s.peer.Origin.Cluster))
}

// belief judges the peer by what is known now. The lock is held.
func (s *session) belief() authority.Belief {
	if s.generation != s.trust.Generation() {
		s.generation = s.trust.Generation()
		s.stated = s.trust.Pins().Proves(s.peer.Origin, authority.PublicKey(s.peer.Key), s.peer.Statement) == nil
	}
	return s.trust.Belief(peerOf(s.peer, s.stated))
}

// heard notes a frame from the node. The lock is held.
func (s *session) heard() {
	s.sign(s.peer.Origin, func(now time.Time) {
		if s.counted {
			s.contacts.Frame(s.peer.ID, now)
			return
		}
		s.counted = true
		s.contacts.Stream(s.peer.ID, +1, now)
		s.events.Poke()
	})
}

// Close implements stream.Session.
func (s *session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted {
		s.sign(s.peer.Origin, func(now time.Time) { s.contacts.Stream(s.peer.ID, -1, now) })
		s.events.Poke() // a broken stream can make a probe due
	}
}

package stream

import (
	"crypto/tls"
	"math/rand/v2"
	"time"

	"strait.io/strait/internal/gossipkey"
)

const (
	// renewWithin spreads the handshakes after a change of keys.
	renewWithin = time.Second
	// dropAfter is how long a stream stays whose peer proved only a key that is no longer accepted.
	// A peer that has the other key too replaces it by then.
	dropAfter = 5 * time.Second
)

// Rekey replaces the keys that are accepted, and the one that is used. Streams to neighbours are
// opened again. Streams of peers that proved no key of these end.
func (s *Streams) Rekey(keys gossipkey.Ring) error {
	id, err := newIdentity(keys, s.self, s.mine)
	if err != nil {
		return err
	}
	s.identity.Store(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sender := range s.senders {
		time.AfterFunc(rand.N(renewWithin), sender.renew.Poke)
	}
	time.AfterFunc(dropAfter, s.drop)
	return nil
}

// note remembers a stream that a peer opened.
func (s *Streams) note(conn *tls.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted[conn] = true
}

func (s *Streams) forget(conn *tls.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.accepted, conn)
}

// drop closes the streams of peers that proved no key that is accepted now.
func (s *Streams) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.identity.Load()
	for conn := range s.accepted {
		if _, err := id.peer(conn.ConnectionState()); err != nil {
			hangUp(conn)
		}
	}
}

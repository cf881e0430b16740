package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// queryProtocol is the ALPN protocol of queries, which nodes of one cluster send each other. What they
// contain is up to the Answerer.
const queryProtocol = "strait-api/1"

// Bounds on the queries that are answered at once: all of them, and those of one source. A connection ends
// after queryTimeout, so a peer that reads slowly does not keep its place.
const (
	maxQueries          = 32
	maxQueriesPerSource = 8
	queryTimeout        = 10 * time.Second
)

// Answerer answers the queries of other nodes.
type Answerer interface {
	// Trusts returns an error unless a peer is a node of this daemon's cluster, as far as its keys can
	// prove that. Only such a peer may query this daemon, and be queried by it.
	Trusts(p Peer) error
	// Answer answers a query on a connection, and returns when the answer is sent or the connection broke.
	Answer(conn net.Conn)
}

// ErrNoAnswerer means that the daemon at an address answers no queries.
var ErrNoAnswerer = errors.New("it answers no queries of other nodes")

// Query opens a connection for a query to a node of this cluster. The caller must close it.
func (s *Streams) Query(ctx context.Context, to clustermesh.Origin) (net.Conn, error) {
	if s.services.Answerer == nil {
		return nil, ErrNoAnswerer
	}
	addr := s.host.Addr(to)
	if !addr.IsValid() {
		return nil, fmt.Errorf("no address of %s is known", to)
	}
	conn, peer, _, err := s.dialFor(ctx, addr.String(), queryProtocol)
	if err != nil {
		if refusesProtocol(err) {
			err = ErrNoAnswerer
		}
		return nil, err
	}
	if peer.Origin != to {
		err = fmt.Errorf("%s answers as %s", addr, peer.Origin)
	} else {
		err = s.services.Answerer.Trusts(peer)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// answer has one query answered, if its peer may send one and there is room.
func (s *Streams) answer(conn *tls.Conn, peer Peer) error {
	if err := s.services.Answerer.Trusts(peer); err != nil {
		return err
	}
	from, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	source := l4.Source(from.Addr())
	if !s.queries.enter(source) {
		return errBusy
	}
	defer s.queries.leave(source)
	end := time.AfterFunc(queryTimeout, func() { hangUp(conn) })
	defer end.Stop()
	s.services.Answerer.Answer(conn)
	return nil
}

// queries counts those that are answered now. The zero value is ready.
type queries struct {
	mu   sync.Mutex
	of   map[netip.Prefix]int
	size int
}

// enter reports whether there is room for one more of a source. If so, the caller must call leave.
func (q *queries) enter(source netip.Prefix) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size >= maxQueries || q.of[source] >= maxQueriesPerSource {
		return false
	}
	if q.of == nil {
		q.of = map[netip.Prefix]int{}
	}
	q.of[source]++
	q.size++
	return true
}

func (q *queries) leave(source netip.Prefix) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size--
	if q.of[source]--; q.of[source] == 0 {
		delete(q.of, source)
	}
}

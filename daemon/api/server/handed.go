package server

import (
	"net"
	"net/http"
	"sync"
)

// handed is a listener of connections that another package accepted: those of other nodes of the cluster.
type handed struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHanded() *handed {
	return &handed{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handed) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *handed) Addr() net.Addr { return handedAddr{} }

// handedAddr implements net.Addr.
type handedAddr struct{}

func (handedAddr) Network() string { return "handed" }
func (handedAddr) String() string  { return "other nodes" }

// handedConn tells when the server is done with a connection.
type handedConn struct {
	net.Conn
	done chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *handedConn) Close() error {
	defer c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

// Answer answers one query of another node's daemon on a connection, and returns when it is done. The caller
// must know that it may be answered. Run must be running, or have ended.
func (s *Server) Answer(conn net.Conn) {
	c := &handedConn{Conn: conn, done: make(chan struct{})}
	select {
	case s.handed.conns <- c:
		<-c.done
	case <-s.handed.closed:
		conn.Close()
	}
}

// peerHandler answers other nodes: about this node only, and one query on each connection.
func (s *Server) peerHandler() http.Handler {
	own := s.answers()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		own.ServeHTTP(w, r)
	})
}

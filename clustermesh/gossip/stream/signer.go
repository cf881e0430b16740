package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// signerProtocol is the ALPN protocol of requests for statements. Only signers offer it.
const signerProtocol = "strait-signer/1"

const (
	// maxSignerFrame bounds each message, in bytes, and signerTimeout the whole exchange: the signer
	// may have to query its API server.
	maxSignerFrame = 128 << 10
	signerTimeout  = 8 * time.Second
	// requestTimeout is how long the request itself may take: it is one message, and the asker has what
	// it needs for it.
	requestTimeout = 2 * time.Second
	// strangerTimeout bounds the answer for a peer of which nothing is known.
	strangerTimeout = 4 * time.Second
)

// Signer answers requests for statements. Channel is what both ends know of the connection, and no
// third party does: 32 bytes.
type Signer interface {
	// Signs reports whether it answers now. It can change.
	Signs() bool
	// ProveRoot returns what the signer sends first.
	ProveRoot(channel []byte) []byte
	// Knows reports whether a peer has proven that it is a node of which the signer knows something. Its
	// requests come first. It takes no time, and neither does Check.
	Knows(p Peer) bool
	// Check returns the key that signed a request for a channel, or an error if it is no such request.
	Check(channel, request []byte) (Key, error)
	// Answer returns the answer to a request of a peer.
	Answer(ctx context.Context, p Peer, channel, request []byte) []byte
}

// ErrNoSigner means that the daemon at an address signs nothing.
var ErrNoSigner = errors.New("it signs no statements")

// AskSigner sends a request to the signer at an address, and returns the answer. Request is called with
// the channel and what the signer sends first; if it returns an error, nothing is sent.
func (s *Streams) AskSigner(ctx context.Context, addr netip.AddrPort, request func(channel, introduction []byte) ([]byte, error)) ([]byte, error) {
	conn, _, _, err := s.dialFor(ctx, addr.String(), signerProtocol)
	if err != nil {
		if refusesProtocol(err) {
			err = ErrNoSigner
		}
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	channel, err := begin(conn)
	if err != nil {
		return nil, err
	}
	introduction, err := readShort(conn)
	if err != nil {
		return nil, fmt.Errorf("read the signer's introduction: %w", err)
	}
	message, err := request(channel, introduction)
	if err == nil {
		err = writeShort(conn, message)
	}
	if err != nil {
		return nil, err
	}
	return readShort(conn)
}

// sign serves one request for a statement. What the peer requests must be here, and signed, before it takes
// more than room at the desk.
func (s *Streams) sign(ctx context.Context, conn net.Conn, peer Peer) error {
	from, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	in, out := s.desk.enter(conn, from.Addr(), s.services.Signer.Knows(peer))
	if out != nil {
		out.conn.Close()
	}
	defer s.desk.leave(in)
	channel, err := begin(conn)
	if err == nil {
		err = writeShort(conn, s.services.Signer.ProveRoot(channel))
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Now().Add(requestTimeout))
	}
	if err != nil {
		return err
	}
	request, err := readShort(conn)
	if err != nil {
		return err
	}
	key, err := s.services.Signer.Check(channel, request)
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, signerTimeout)
	defer cancel()
	if err := s.desk.ask(wait, in, key); err != nil {
		return err
	}
	limit := signerTimeout
	if !in.known {
		limit = strangerTimeout
	}
	work, done := context.WithTimeout(wait, limit)
	defer done()
	return writeShort(conn, s.services.Signer.Answer(work, peer, channel, request))
}

// begin sets the time for the exchange, and returns the channel.
func begin(conn net.Conn) (channel []byte, err error) {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil, errors.New("not a TLS connection")
	}
	if err := conn.SetDeadline(time.Now().Add(signerTimeout)); err != nil {
		return nil, err
	}
	state := secure.ConnectionState()
	return state.ExportKeyingMaterial("strait signer", nil, 32)
}

func readShort(conn net.Conn) ([]byte, error) {
	return ReadFrame(io.LimitReader(conn, maxSignerFrame), nil)
}

func writeShort(conn net.Conn, message []byte) error {
	w := bufio.NewWriter(conn)
	if err := WriteFrame(w, message); err != nil {
		return err
	}
	return w.Flush()
}

package stream

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
)

// old serves connections as the version before does: record streams only, anything else without TLS.
func (e *end) old(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer raw.Close()
				first := make([]byte, 1)
				if _, err := io.ReadFull(raw, first); err == nil && first[0] != 0x16 {
					_, _ = raw.Write([]byte("plain"))
					return
				}
				_ = tls.Server(&peeked{raw, first}, e.identity.Load().config(streamProtocol)).HandshakeContext(t.Context())
			}()
		}
	}()
	return l.Addr().String()
}

type peeked struct {
	net.Conn
	first []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// TestMembersWithOldDaemon: memberlist's connections work with the version before, in both directions,
// and not with a stranger who only claims to be of that version.
func TestMembersWithOldDaemon(t *testing.T) {
	all := ends(t, "a", "b", "stranger")
	a, b, stranger := all["a"], all["b"], all["stranger"]
	conn, plain, err := a.DialMembers(t.Context(), b.old(t))
	if err != nil || !plain {
		t.Fatalf("to an old daemon: plain %v, %v", plain, err)
	}
	defer conn.Close()
	got := make([]byte, 5)
	if _, err := conn.Write([]byte{244}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "plain" {
		t.Errorf("an old daemon answers %q, %v", got, err)
	}
	if conn, _, err := a.DialMembers(t.Context(), stranger.old(t)); err == nil {
		conn.Close()
		t.Error("a stranger gets a connection without TLS")
	}

	for _, c := range []struct {
		what         string
		protocols    []string
		members, old bool
	}{
		{"an old daemon's record stream", []string{streamProtocol}, false, true},
		{"a record stream", []string{streamProtocol, membersProtocol}, false, false},
		{"memberlist's connection", []string{membersProtocol}, true, false},
	} {
		members, old, err := handshake(t, a, b, c.protocols...)
		if err != nil || members != c.members || old != c.old {
			t.Errorf("%s: members %v, old %v, %v", c.what, members, old, err)
		}
	}
	if _, _, err := handshake(t, a, stranger, membersProtocol); err == nil {
		t.Error("a stranger's connection is handed to memberlist")
	}
}

// handshake returns what one end says of a connection that another opens.
func handshake(t *testing.T, at, by *end, protocols ...string) (members, old bool, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		if conn, _, err := by.dialFor(ctx, l.Addr().String(), protocols...); err == nil {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	raw, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, members, old, err = at.Handshake(ctx, raw)
	return members, old, err
}

package stream

import (
	"context"
	"io"
	"net"
	"testing"
)

// TestMembers: which of the connections that peers open are memberlist's. A stranger's are not.
func TestMembers(t *testing.T) {
	all := ends(t, "a", "b", "stranger")
	a, b, stranger := all["a"], all["b"], all["stranger"]
	for _, c := range []struct {
		what      string
		protocols []string
		members   bool
	}{
		{"a record stream", []string{streamProtocol}, false},
		{"a record stream that could be memberlist's", []string{streamProtocol, membersProtocol}, false},
		{"memberlist's connection", []string{membersProtocol}, true},
	} {
		if members, err := handshake(t, a, b, c.protocols...); err != nil || members != c.members {
			t.Errorf("%s: members %v, %v", c.what, members, err)
		}
	}
	if _, err := handshake(t, a, stranger, membersProtocol); err == nil {
		t.Error("a stranger's connection is handed to memberlist")
	}
}

// handshake returns what one end says of a connection that another opens.
func handshake(t *testing.T, at, by *end, protocols ...string) (members bool, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		if conn, _, _, err := by.dialFor(ctx, l.Addr().String(), protocols...); err == nil {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	raw, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, members, err = at.Handshake(ctx, raw)
	return members, err
}

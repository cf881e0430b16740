package gossip

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

func someEntries(t testing.TB, n int) (entries []replica.Entry) {
	for i := range n {
		e, err := replica.NewEntry(clustermesh.Record{
			Origin: origin("a", "n"+string(rune('a'+i%26))), Stamp: clustermesh.Stamp{Epoch: uint64(i + 1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

// TestForeignStream: what is neither memberlist nor ours, or says nothing, is let go, and gossip goes on.
func TestForeignStream(t *testing.T) {
	c := config(origin("a", "n1"))
	d := start(t, c)
	eventually(t, "it listens", func() bool {
		conn, err := net.Dial("tcp", c.Bind.String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff garbage", "\x16"} {
		conn, err := net.Dial("tcp", c.Bind.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the stream was not closed", text)
		}
		conn.Close()
	}
	other := start(t, config(origin("a", "n2"), c.Bind))
	other.say(2)
	eventually(t, "gossip goes on", func() bool { return d.said(other.cfg.Self) == 2 })
	if p := d.Problems(); len(p) != 0 {
		t.Errorf("noise is no problem: %v", p)
	}
}

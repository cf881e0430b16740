package stream

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
)

// haunt opens a stream of a peer that is not believed, from an address, and keeps it open.
func haunt(t *testing.T, id *identity, src netip.Addr, to netip.AddrPort, open *atomic.Int64) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: src.AsSlice()}, Timeout: patience}
	raw, err := d.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, id.config(streamProtocol))
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	open.Add(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, conn)
		open.Add(-1)
	}()
	go func() {
		for say := time.NewTicker(2 * time.Second); ; { // so that it does not end for being silent
			select {
			case <-done:
				return
			case <-say.C:
				_ = writeShort(conn, nil)
			}
		}
	}()
	t.Cleanup(func() { raw.Close(); <-done })
}

// TestDoubtedStreams: peers that have the gossip key and prove nothing more open 600 streams. A few of one
// address stay, and some hundreds of many; a peer that is believed is connected at once all the same.
func TestDoubtedStreams(t *testing.T) {
	for name, c := range map[string]struct {
		src  func(i int) netip.Addr
		most int64
	}{
		"one address":    {func(int) netip.Addr { return netip.AddrFrom4([4]byte{127, 9, 9, 9}) }, maxDoubtedPerSource},
		"many addresses": {func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 9, byte(i >> 8), byte(i)}) }, maxDoubted},
	} {
		t.Run(name, func(t *testing.T) {
			all := ends(t, "server", "friend", "stranger")
			ghost, err := newIdentity(gossipkey.Ring{{7}}, member.Peer{ID: member.ID{Origin: named("ghost"), Boot: 9}}, Credentials{})
			if err != nil {
				t.Fatal(err)
			}
			var open atomic.Int64
			for i := range 600 {
				haunt(t, ghost, c.src(i), all["server"].addr, &open)
				if i == 550 {
					began := time.Now()
					all["friend"].Follow(map[clustermesh.Origin]bool{named("server"): true})
					eventually(t, "the believed peer is there", func() bool { return slices.Contains(all["server"].from(), "friend") })
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("the believed peer took %s", took)
					}
				}
			}
			if got := open.Load(); got > c.most+20 { // some end just now
				t.Errorf("%d are open", got)
			}
			eventually(t, "those that are too many are gone", func() bool { return open.Load() <= c.most })
			if got := open.Load(); got < c.most/2 {
				t.Errorf("only %d are left", got)
			}
			if !slices.Contains(all["server"].from(), "friend") {
				t.Error("the believed peer had to go")
			}
		})
	}
}

// TestCrowdForgets: streams that ended, and those of peers that are believed meanwhile, take no room.
func TestCrowdForgets(t *testing.T) {
	var c crowd
	src := netip.MustParseAddr("192.0.2.1")
	believed := &heard{from: named("n1")}
	for range maxDoubtedPerSource {
		c.enter(nil, src, believed)
	}
	ghost := &heard{from: named("ghost")}
	for range 3 * maxDoubtedPerSource {
		in, out := c.enter(nil, src, ghost)
		if out != nil {
			t.Fatal("one has to go")
		}
		c.leave(in)
	}
	for range maxDoubtedPerSource {
		c.enter(nil, src, ghost)
	}
	if _, out := c.enter(nil, src, ghost); out == nil {
		t.Error("there is room for all")
	}
}

package gossip

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/stream"
)

// from dials a daemon from an address of a stranger's own.
func from(src netip.Addr, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: src.AsSlice()}, Timeout: patience}
	return d.Dial("tcp", to.String())
}

// listening waits until a daemon accepts connections.
func listening(t *testing.T, to netip.AddrPort) {
	t.Helper()
	eventually(t, "it listens", func() bool {
		conn, err := net.Dial("tcp", to.String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// flood sends what looks like memberlist's encrypted state of 20 MiB, or like a TLS handshake that
// does not end, until it is cut off or ctx ends. It keeps the connection open.
func flood(ctx context.Context, to netip.AddrPort, src netip.Addr, asTLS bool) {
	conn, err := from(src, to)
	if err != nil {
		return
	}
	defer conn.Close()
	const size = 20<<20 - 100
	head := append([]byte{244, 6}, "strait"...)
	head = binary.BigEndian.AppendUint32(append(head, 10), size)
	chunk := make([]byte, 64<<10)
	if asTLS { // a record of a handshake message, which says that it is much longer, and more records
		head = []byte{0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}
		chunk = append(make([]byte, 16380), 0x16, 3, 1, 0x40, 0, 0, 0, 0, 0)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, err = conn.Write(head)
	for sent := 0; sent+len(chunk) < size && err == nil && ctx.Err() == nil; sent += len(chunk) {
		_, err = conn.Write(chunk)
	}
	if err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// TestFloodIsNotBuffered: what a stranger sends to the TCP port is not kept in memory.
func TestFloodIsNotBuffered(t *testing.T) {
	c := config(origin("a", "n1"))
	start(t, c)
	listening(t, c.Bind)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before := heap()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	src := testAddr().Addr()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() { flood(ctx, c.Bind, src, i%2 == 0) })
		}
		wg.Wait()
	}()
	most := before
	for going := true; going; {
		select {
		case <-ended:
			going = false
		case <-time.After(5 * time.Millisecond):
		}
		most = max(most, heap())
	}
	if grown := (most - before) >> 20; grown > 16 {
		t.Errorf("60 strangers' connections took %d MiB", grown)
	} else {
		t.Logf("60 strangers' connections took %d MiB", grown)
	}
}

// asker is a daemon without a port: it asks others who they are.
type asker struct{ stream.Host }

func (asker) Admit(stream.Peer, string) (stream.Session, bool, error) { return nil, true, nil }

func newAsker(t *testing.T, o clustermesh.Origin) *stream.Streams {
	t.Helper()
	s, err := stream.New(member.Peer{ID: member.ID{Origin: o, Boot: 1}}, testKeys, stream.Credentials{}, asker{}, stream.Services{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSilentConnections: a stranger that keeps 600 connections open and says nothing keeps no daemon
// out, not even one with the stranger's own address; nor do strangers with 600 addresses. It is not parallel: it needs
// a whole processor, and other tests measure how long things take.
func TestSilentConnections(t *testing.T) {
	one := testAddr().Addr()
	t.Run("one address", func(t *testing.T) { keepOut(t, func(int) netip.Addr { return one }) })
	t.Run("many addresses", func(t *testing.T) {
		keepOut(t, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 252, byte(i >> 8), byte(i)}) })
	})
}

// keepOut opens 600 connections from some addresses again and again, and asks the daemon meanwhile.
func keepOut(t *testing.T, src func(i int) netip.Addr) {
	c := config(origin("a", "n1"))
	start(t, c)
	listening(t, c.Bind)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var mu sync.Mutex
	open := 0
	for i := range 600 {
		wg.Go(func() {
			for ctx.Err() == nil {
				conn, err := from(src(i), c.Bind)
				if err != nil {
					sleep(ctx, time.Millisecond)
					continue
				}
				mu.Lock()
				open++
				mu.Unlock()
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				_, _ = io.Copy(io.Discard, conn)
				stop()
				conn.Close()
				sleep(ctx, 100*time.Millisecond) // and comes again
			}
		})
	}
	eventually(t, "the strangers are there", func() bool { mu.Lock(); defer mu.Unlock(); return open >= 600 })
	real := newAsker(t, origin("a", "n2"))
	ask := func() bool {
		p, err := real.Ask(ctx, c.Bind)
		return err == nil && p.Origin == c.Self
	}
	var took []time.Duration
	failed, twice := 0, 0
	for range 200 {
		began := time.Now()
		if !ask() {
			// On a machine that stands still, a connection can be the oldest before it says anything.
			// Daemons try again.
			if failed++; !ask() {
				twice++
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("of 200 real connections, %d failed; the median took %s, the longest %s", failed, took[100], took[199])
	if failed > 2 || twice > 0 {
		t.Errorf("%d of 200 real connections failed, %d of them twice in a row", failed, twice)
	}
}

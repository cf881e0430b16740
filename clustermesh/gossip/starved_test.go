package gossip

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// TestSignerStarved: a new node gets its statement while attackers that have the gossip key alone
// hold connections to the signer: silent ones, such as send no request, valid ones of nodes that do
// not exist, and some that were made for another channel. What the signer asks others about is
// bounded. Valid requests come from another address than the node's: those of one address share what
// room it has, and the node would get its turn only by luck. Like TestSilentConnections, it is not parallel.
func TestSignerStarved(t *testing.T) {
	const invented = "invented"
	var old atomic.Pointer[[]byte]
	silent := func(ctx context.Context, _ []byte, _ int) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
	for what, say := range map[string]func(ctx context.Context, channel []byte, n int) ([]byte, error){
		"silent":  silent,
		"garbage": func(context.Context, []byte, int) ([]byte, error) { return []byte("garbage"), nil },
		invented: func(_ context.Context, channel []byte, n int) ([]byte, error) {
			key := authority.PrivateKey(sha256.Sum256(fmt.Appendf(nil, "%d", n)))
			r := authority.Request{Token: "garbage", Want: authority.Statement{Cluster: "west", Node: clustermesh.NodeName(fmt.Sprintf("x%d", n)), Key: key.Public()}}
			return r.Sign(key, channel)
		},
		"replayed": func(ctx context.Context, channel []byte, n int) ([]byte, error) {
			if b := old.Load(); b != nil {
				return *b, nil
			}
			key := authority.PrivateKey{1}
			b, err := authority.Request{Want: authority.Statement{Cluster: "west", Node: "x", Key: key.Public()}}.Sign(key, make([]byte, 32))
			old.Store(&b)
			return b, err
		},
	} {
		t.Run(what, func(t *testing.T) { starve(t, say, what == invented) })
	}
}

// starve asks a signer as attackers do, each time with what say returns. If elsewhere is true, they have
// another address than the new node.
func starve(t *testing.T, say func(ctx context.Context, channel []byte, n int) ([]byte, error), elsewhere bool) {
	pins := pinned("west")
	first := origin("west", "n1")
	var tokens, working, most atomic.Int64
	signs := attesting(signing(config(origin("west", "n2")), pins), first, &tokens)
	attest := signs.Attest
	signs.Attest = func(ctx context.Context, r authority.Request) error {
		for n := working.Add(1); most.Load() < n; {
			most.Store(n)
		}
		defer working.Add(-1)
		return attest(ctx, r)
	}
	keeper := start(t, signs)
	keeper.tell(0, 2)
	listening(t, signs.Bind)
	at := signs.Bind
	if elsewhere {
		at = through(t, signs.Bind, netip.AddrFrom4([4]byte{127, 253, 0, 1}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var there atomic.Int64
	done := make(chan struct{})
	const attackers = 64
	for i := range attackers {
		evil := newAsker(t, origin("mallory", fmt.Sprintf("n%d", i)))
		go func() {
			defer func() { done <- struct{}{} }()
			for n := i; ctx.Err() == nil; n += attackers {
				_, _ = evil.AskSigner(ctx, at, func(channel, _ []byte) ([]byte, error) {
					there.Add(1)
					return say(ctx, channel, n)
				})
				sleep(ctx, 10*time.Millisecond)
			}
		}()
	}
	defer func() {
		cancel()
		for range attackers {
			<-done
		}
	}()
	eventually(t, "the attackers are there", func() bool { return there.Load() > 16 })
	follower := start(t, following(config(first, signs.Bind), pins))
	follower.tell(0, 1)
	eventually(t, "it gets its statement", func() bool { return keeper.said(first) == 1 })
	if n := most.Load(); n > 2 { // of one source, and the node itself
		t.Errorf("the signer worked for %d at once", n)
	}
}

// through returns an address that leads to a daemon, which takes all that comes there for connections
// from src. What dials the daemon itself has one address for all.
func through(t *testing.T, to netip.AddrPort, src netip.Addr) netip.AddrPort {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(testAddr()))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { relay(in, to, src) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// relay copies between a connection and a new one from src, until one of them ends.
func relay(in net.Conn, to netip.AddrPort, src netip.Addr) {
	defer in.Close()
	out, err := from(src, to)
	if err != nil {
		return // the one that called sees its connection end
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer in.Close()
		_, _ = io.Copy(in, out)
	}()
	_, _ = io.Copy(out, in)
	out.Close()
	<-done
}

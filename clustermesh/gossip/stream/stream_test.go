package stream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
)

// patience is how long a test waits for what should take less.
const patience = 20 * time.Second

// end is a Host on a loopback port that writes down what its streams tell it.
type end struct {
	*Streams
	self  clustermesh.Origin
	addr  netip.AddrPort
	cut   context.CancelFunc
	addrs func(clustermesh.Origin) netip.AddrPort

	mu        sync.Mutex
	open      map[clustermesh.Origin]int
	messages  []string
	renewed   int // streams, and messages dropped
	connected map[clustermesh.Origin]bool
	wrong     int
	refuses   clustermesh.Origin
	doubts    clustermesh.Origin
	// distrusts and answers are for queries.
	distrusts clustermesh.Origin
	answers   func(net.Conn)
}

func (e *end) Addr(o clustermesh.Origin) netip.AddrPort  { return e.addrs(o) }
func (e *end) Missed(clustermesh.Origin, netip.AddrPort) {}

func (e *end) Admit(p Peer, _ string) (Session, bool, error) {
	if p.Origin == e.refuses {
		return nil, false, errors.New("refused")
	}
	return &heard{end: e, from: p.Origin}, p.Origin != e.doubts, nil
}
func (e *end) Accept(p Peer, _ string) (Session, error) {
	s, _, err := e.Admit(p, "")
	return s, err
}
func (e *end) Connected(to clustermesh.Origin, _ bool) {
	e.do(func() {
		if e.connected[to] {
			e.renewed++
		}
		e.connected[to] = true
	})
}
func (e *end) Dropped(clustermesh.Origin) { e.do(func() { e.renewed++ }) }
func (e *end) WrongKey(string)            { e.do(func() { e.wrong++ }) }

// heard is one connection that a peer opened.
type heard struct {
	*end
	from clustermesh.Origin
	any  bool
}

func (h *heard) Receive(m []byte) error {
	h.do(func() {
		if !h.any {
			h.any = true
			h.open[h.from]++
		}
		if len(m) > 0 {
			h.messages = append(h.messages, string(h.from.Node)+" "+string(m))
		}
	})
	return nil
}

func (h *heard) Trusted() bool { return !strings.HasPrefix(string(h.from.Node), "ghost") }

func (h *heard) Close() {
	h.do(func() {
		if h.any {
			h.open[h.from]--
		}
	})
}

func (e *end) do(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// from are the peers that have a stream to this end.
func (e *end) from() (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for o, n := range e.open {
		if n > 0 {
			out = append(out, string(o.Node))
		}
	}
	slices.Sort(out)
	return out
}

func (e *end) got(message string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.messages, message)
}

// ends starts some daemons' streams, all with one key but the last. One named signer signs.
func ends(t *testing.T, names ...string) map[string]*end {
	t.Helper()
	out := map[string]*end{}
	for i, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		e := &end{self: named(name), addr: l.Addr().(*net.TCPAddr).AddrPort(), open: map[clustermesh.Origin]int{}, connected: map[clustermesh.Origin]bool{}}
		e.addrs = func(o clustermesh.Origin) netip.AddrPort { return out[string(o.Node)].addr }
		key := gossipkey.Key{7}
		if i == len(names)-1 {
			key[0] = 8
		}
		e.Streams, err = New(member.Peer{ID: member.ID{Origin: e.self, Boot: uint64(i + 1)}}, gossipkey.Ring{key}, Credentials{}, e, servicesOf(e, name), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = e
		ctx, cancel := context.WithCancel(t.Context())
		e.cut = cancel
		opened := make(chan net.Conn)
		var wg sync.WaitGroup
		wg.Go(func() { e.Run(ctx, opened) })
		wg.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				if ctx.Err() != nil {
					conn.Close()
					continue
				}
				wg.Go(func() {
					accepted, _, err := e.Handshake(ctx, conn)
					if err != nil {
						conn.Close()
						return
					}
					select {
					case opened <- accepted:
					case <-ctx.Done():
						conn.Close()
					}
				})
			}
		})
		t.Cleanup(func() {
			cancel()
			l.Close()
			wg.Wait()
		})
	}
	return out
}

func named(node string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: "c", Node: clustermesh.NodeName(node)}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for began := time.Now(); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// TestFollow: streams stand to those that are followed, and to no others.
func TestFollow(t *testing.T) {
	all := ends(t, "a", "b", "c", "d", "stranger")
	a, b, c, d := all["a"], all["b"], all["c"], all["d"]
	a.Send(b.self, []byte("lost: there is no stream yet"))
	a.Follow(map[clustermesh.Origin]bool{b.self: true, c.self: true})
	a.Send(b.self, []byte("first")) // at once: it waits for the stream
	d.Follow(map[clustermesh.Origin]bool{a.self: true})
	eventually(t, "the streams stand", func() bool {
		return slices.Equal(b.from(), []string{"a"}) && slices.Equal(c.from(), []string{"a"}) && slices.Equal(a.from(), []string{"d"})
	})
	eventually(t, "the message comes", func() bool { return b.got("a first") })
	if b.got("a lost: there is no stream yet") || c.got("a first") || len(d.from()) > 0 {
		t.Error("a message or a stream that no peer wanted")
	}

	a.Follow(map[clustermesh.Origin]bool{b.self: false, d.self: true})
	eventually(t, "b is left, and d has one", func() bool { return len(b.from()) == 0 && slices.Equal(d.from(), []string{"a"}) })
	a.Send(b.self, []byte("late"))
	a.Send(c.self, []byte("still"))
	eventually(t, "c hears", func() bool { return c.got("a still") })
	if b.got("a late") {
		t.Error("b hears too")
	}
	if a.do(func() {}); a.renewed != 0 {
		t.Errorf("%d streams were renewed, though none broke", a.renewed)
	}
}

// TestStreamIsRenewed: a stream that could not be opened is opened later, and the host learns when.
func TestStreamIsRenewed(t *testing.T) {
	all := ends(t, "a", "b", "stranger")
	a, b := all["a"], all["b"]
	var mu sync.Mutex
	addr := b.addr
	a.addrs = func(clustermesh.Origin) netip.AddrPort { mu.Lock(); defer mu.Unlock(); return addr }
	b.cut() // its streams end; it accepts no more
	a.Follow(map[clustermesh.Origin]bool{b.self: true})
	time.Sleep(300 * time.Millisecond)
	again := ends(t, "b", "stranger")["b"] // a new life at another address
	mu.Lock()
	addr = again.addr
	mu.Unlock()
	eventually(t, "the stream comes back", func() bool { return slices.Equal(again.from(), []string{"a"}) })
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.connected[b.self] || a.renewed != 0 {
		t.Errorf("connected %v, renewed %d times", a.connected, a.renewed)
	}
}

// TestRefused: another key and a refusal by the host end a stream before a message passes, and say why.
func TestRefused(t *testing.T) {
	all := ends(t, "a", "b", "stranger")
	a, b, stranger := all["a"], all["b"], all["stranger"]
	if _, err := a.Ask(t.Context(), stranger.addr); !errors.Is(err, ErrWrongKey) {
		t.Errorf("a asks a stranger: %v", err)
	}
	if _, err := stranger.Ask(t.Context(), a.addr); !errors.Is(err, ErrWrongKey) {
		t.Errorf("a stranger asks a: %v", err)
	}
	eventually(t, "both ends know", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.wrong > 0
	})
	if p, err := a.Ask(t.Context(), b.addr); err != nil || p.Origin != b.self || p.Boot != 2 {
		t.Errorf("a asks b: %v, %v", p, err)
	}
	a.refuses = b.self
	if p, err := a.Ask(t.Context(), b.addr); err == nil || p.Origin != b.self {
		t.Errorf("a refuses b: %v, %v", p, err)
	}
	a.Follow(map[clustermesh.Origin]bool{b.self: true})
	b.Follow(map[clustermesh.Origin]bool{a.self: true})
	b.Send(a.self, []byte("hello"))
	time.Sleep(300 * time.Millisecond)
	if a.got("b hello") || len(a.from())+len(b.from()) > 0 {
		t.Errorf("streams stand from %v and %v", a.from(), b.from())
	}
}

// TestDoubted: a stream to a daemon that is not believed to be its node is opened again now and then, where
// the node is by then.
func TestDoubted(t *testing.T) {
	all := ends(t, "a", "b", "stranger")
	a, b, again := all["a"], all["b"], ends(t, "b", "stranger")["b"]
	var mu sync.Mutex
	addr := b.addr
	a.addrs = func(clustermesh.Origin) netip.AddrPort { mu.Lock(); defer mu.Unlock(); return addr }
	a.doubts = b.self
	a.Follow(map[clustermesh.Origin]bool{b.self: true})
	eventually(t, "the stream stands", func() bool { return slices.Equal(b.from(), []string{"a"}) })
	mu.Lock()
	addr = again.addr
	mu.Unlock()
	eventually(t, "the stream is where the node is", func() bool { return slices.Equal(again.from(), []string{"a"}) && len(b.from()) == 0 })
}

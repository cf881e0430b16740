package redteam

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
)

// keyholder has the gossip key and nothing else, and sends what no daemon sends: messages of memberlist's
// that it made up, in datagrams and on connections, and messages on streams.
type keyholder struct {
	*stream.Streams
	w    *world
	self stream.Peer
	udp  *net.UDPConn
	everybody
}

// keyholder speaks in the name of a daemon, of a cluster with a UID.
func (w *world) keyholder(as clustermesh.Origin, uid string) *keyholder {
	w.Helper()
	return w.keyholderWith(stream.Credentials{}, as, uid)
}

// keyholderWith has a node's key besides, and shows a statement.
func (w *world) keyholderWith(mine stream.Credentials, as clustermesh.Origin, uid string) *keyholder {
	w.Helper()
	host := everybody{asked: &sync.Map{}, heard: &sync.Map{}, at: numbered, received: func(clustermesh.Origin, []byte) {}}
	return w.keyholderAt(mine, as, uid, host)
}

// keyholderAt speaks with daemons where its host finds them.
func (w *world) keyholderAt(mine stream.Credentials, as clustermesh.Origin, uid string, host everybody) *keyholder {
	w.Helper()
	var self stream.Peer
	self.Origin, self.Boot, self.UID = as, uint64(time.Now().UnixNano()), uid
	s, err := stream.New(self.Peer, w.keys, mine, host, stream.Services{}, slog.New(slog.DiscardHandler))
	w.must(err)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: stranger(20).AsSlice()})
	w.must(err)
	w.Cleanup(func() { udp.Close() })
	return &keyholder{s, w, self, udp, host}
}

// everybody is the stream.Host of a keyholder, which talks to all daemons where the daemons of this test are.
type everybody struct {
	// asked has the nodes that asked for records, and heard the entries that were sent, by origin.
	asked, heard *sync.Map
	// at is where a daemon is, and received is called with what it sends.
	at       func(clustermesh.Origin) netip.AddrPort
	received func(from clustermesh.Origin, message []byte)
}

// numbered is where the daemon of a cluster is that has one.
func numbered(o clustermesh.Origin) netip.AddrPort {
	return gossipOf(map[clustermesh.ClusterName]byte{"west": westNumber, "east": eastNumber, "north": northNumber}[o.Cluster])
}

func (e everybody) Addr(o clustermesh.Origin) netip.AddrPort { return e.at(o) }
func (everybody) Missed(clustermesh.Origin, netip.AddrPort)  {}
func (everybody) Connected(clustermesh.Origin, bool)         {}
func (everybody) Dropped(clustermesh.Origin)                 {}
func (everybody) WrongKey(string)                            {}

func (e everybody) Admit(p stream.Peer, _ string) (stream.Session, bool, error) {
	return hearing{e, p.Origin}, false, nil
}

func (e everybody) Accept(p stream.Peer, _ string) (stream.Session, error) {
	return hearing{e, p.Origin}, nil
}

// hearing is the stream of a node to a keyholder.
type hearing struct {
	everybody
	from clustermesh.Origin
}

// Receive implements stream.Session.
func (h hearing) Receive(message []byte) error {
	if len(message) == 0 {
		return nil
	}
	h.received(h.from, message)
	m, err := replica.Decode(message)
	if err != nil {
		return nil
	}
	switch m := m.(type) {
	case *replica.Want:
		h.asked.Store(h.from, true)
	case *replica.Snapshot:
		for _, e := range m.Entries {
			h.heard.Store(e.Record.Origin, e)
		}
	}
	return nil
}

// Trusted implements stream.Session: a keyholder refuses no peer.
func (hearing) Trusted() bool { return true }

// Close implements stream.Session.
func (hearing) Close() {}

// joins becomes a member at these nodes, and keeps streams to them, until the returned function is called.
func (k *keyholder) joins(nodes ...clustermesh.Origin) (end func()) {
	k.w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l, err := net.Listen("tcp", gossipOf(mallory).String())
	k.w.must(err)
	opened := make(chan net.Conn)
	var all sync.WaitGroup
	all.Go(func() { k.Run(ctx, opened) })
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				conn, members, err := k.Handshake(ctx, raw)
				if err != nil || members {
					raw.Close()
					return
				}
				select {
				case opened <- conn:
				case <-ctx.Done():
					conn.Close()
				}
			}()
		}
	}()
	follows := map[clustermesh.Origin]bool{}
	for _, o := range nodes {
		follows[o] = true
	}
	k.Follow(follows)
	stay := during(100*time.Millisecond, func(n int) {
		for _, o := range nodes[:min(len(nodes), 3)] { // who tell the others
			k.throws(k.at(o), isAt(k.self.ID.String(), gossipOf(mallory), k.self.UID, n+1))
		}
	})
	return func() { stay(); l.Close(); cancel(); all.Wait() }
}

// introduces tells daemons of each other until the returned function is called.
func (k *keyholder) introduces(numbers ...byte) (end func()) {
	k.w.Helper()
	lives := map[byte]string{}
	for _, n := range numbers {
		lives[n] = k.life(gossipOf(n))
	}
	return during(100*time.Millisecond, func(int) {
		for _, to := range numbers {
			for n, life := range lives {
				if n != to {
					k.throws(gossipOf(to), isAt(life, gossipOf(n), "", 1))
				}
			}
		}
	})
}

// says sends a message on a stream.
func (k *keyholder) says(to clustermesh.Origin, m replica.Message) {
	k.w.Helper()
	b, err := replica.Encode(m)
	k.w.must(err)
	k.Send(to, b)
}

// life returns the name that memberlist has for the daemon at an address.
func (k *keyholder) life(at netip.AddrPort) string {
	k.w.Helper()
	ctx, cancel := context.WithTimeout(k.w.Context(), patience)
	defer cancel()
	p, err := k.Ask(ctx, at)
	k.w.must(err)
	return p.ID.String()
}

// throws sends a text of memberlist's in a datagram.
func (k *keyholder) throws(to netip.AddrPort, text []byte) {
	k.throwsRaw(to, append(bytes.Clone(labelled), encrypted(text, []byte("strait"))...))
}

// throwsRaw sends a datagram.
func (k *keyholder) throwsRaw(to netip.AddrPort, b []byte) {
	if _, err := k.udp.WriteToUDPAddrPort(b, to); err != nil && !errors.Is(err, net.ErrClosed) {
		panic(err)
	}
}

// tells sends a text on one of memberlist's connections, and waits for the answer. The daemon may refuse it.
func (k *keyholder) tells(to netip.AddrPort, text []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := k.DialMembers(ctx, to.String())
	if err != nil {
		return
	}
	defer conn.Close()
	const version, nonce, tag = 1, 12, 16
	head := binary.BigEndian.AppendUint32([]byte{10}, uint32(version+nonce+len(text)+tag))
	message := append(append(bytes.Clone(labelled), head...), encrypted(text, append(head, "strait"...))...)
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write(message); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// labelled is how memberlist begins what it sends.
var labelled = append([]byte{244, 6}, "strait"...)

// encrypted is a text as memberlist encrypts it with the gossip key, which covers some data beside it.
func encrypted(text, beside []byte) []byte {
	block, err := aes.NewCipher(gossipKeys[0][:])
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	return aead.Seal(append([]byte{1}, nonce...), nonce, text, beside)
}

// during does something again and again until the returned function is called.
func during(pause time.Duration, do func(n int)) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			do(n)
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
		}
	}()
	return func() { close(stop); <-done }
}

// Package stream carries messages between daemons: one encrypted stream to each neighbour, on which only we
// write, while the neighbour has its own to us.
//
// Inputs are the neighbours to keep a stream to (Follow), messages (Send), streams that peers open, and the
// gossip key, from which both sides prove that they belong to one clusterset. Outputs are calls of its Host.
// It must not know memberlist, why a daemon is a neighbour, or what messages say.
package stream

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/notify"
)

// DialTimeout is how long a peer may take to answer and to say who it is.
const DialTimeout = 2 * time.Second

const (
	// heartbeat is how often a stream says something, and readTimeout ends one on which nothing came for many
	// of them. How soon silence is a reason to look after a machine is decided in package observe.
	heartbeat    = 500 * time.Millisecond
	readTimeout  = 10 * time.Second
	writeTimeout = 5 * time.Second
	// userTimeout ends a stream whose bytes are not acknowledged. Without it TCP's own back-off would
	// keep a stream stuck for minutes after a partition was healed.
	userTimeout  = 4 * time.Second
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// Host is whose streams they are. Its methods are called from many goroutines, without any lock held.
type Host interface {
	// Addr is where a neighbour listens now.
	Addr(neighbour clustermesh.Origin) netip.AddrPort
	// Admit returns an error unless the daemon that answers at an address may be talked to, and Accept unless
	// one that opened a stream from a host may talk to us.
	Admit(p member.Peer, addr string) error
	Accept(p member.Peer, host string) error
	// Opened says that a stream of a peer has begun to carry messages, Closed that it ended.
	Opened(from clustermesh.Origin)
	Closed(from clustermesh.Origin)
	// Receive takes a message; an empty one is a heartbeat. The bytes are valid until it returns, and an
	// error ends the stream.
	Receive(from clustermesh.Origin, message []byte) error
	// Renewed says that a stream to a neighbour stands again: what was on its way in the last one is lost.
	Renewed(to clustermesh.Origin)
	// WrongKey names a host whose gossip key differs.
	WrongKey(host string)
}

// Streams are all streams of a daemon. Its methods are safe for concurrent use.
type Streams struct {
	host     Host
	identity identity
	log      *slog.Logger
	news     notify.Signal

	mu      sync.Mutex
	senders map[clustermesh.Origin]*sender
	waiting []*sender // not started yet
}

// New makes the certificate by which this daemon shows who it is. It starts nothing.
func New(self member.Peer, key []byte, host Host, log *slog.Logger) (*Streams, error) {
	id, err := newIdentity(key, self)
	return &Streams{
		host: host, identity: id, log: log,
		news: notify.New(), senders: map[clustermesh.Origin]*sender{},
	}, err
}

// Follow makes the streams those to the neighbours: missing ones are opened, and others closed. Messages to a
// new neighbour can be sent at once; they wait for its stream.
func (s *Streams) Follow(neighbours []clustermesh.Origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[clustermesh.Origin]bool, len(neighbours))
	for _, o := range neighbours {
		wanted[o] = true
		if s.senders[o] == nil {
			sender := newSender(o)
			s.senders[o] = sender
			s.waiting = append(s.waiting, sender)
		}
	}
	for o, sender := range s.senders {
		if !wanted[o] {
			sender.cancel()
			delete(s.senders, o)
		}
	}
	s.news.Poke()
}

// Send queues a message for a neighbour. It never blocks: what finds the queue full, or has no stream, is
// dropped, and the digest exchange repairs that.
func (s *Streams) Send(to clustermesh.Origin, message []byte) {
	s.mu.Lock()
	sender := s.senders[to]
	s.mu.Unlock()
	if sender != nil {
		sender.offer(message)
	}
}

// Run keeps the streams and serves those that peers open, until ctx ends.
func (s *Streams) Run(ctx context.Context, opened <-chan net.Conn) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		for _, sender := range s.unstarted() {
			wg.Go(func() { s.keep(ctx, sender) })
		}
		select {
		case <-ctx.Done():
			return
		case <-s.news:
		case conn := <-opened:
			wg.Go(func() { s.accept(ctx, conn) })
		}
	}
}

func (s *Streams) unstarted() []*sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.waiting
	s.waiting = nil
	return out
}

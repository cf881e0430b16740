// Package stream carries messages between daemons: one encrypted connection with each neighbour, on
// which both write, whichever of the two dialled it. Older daemons have one for each direction
// instead. Daemons that sign statements also answer requests, and those of one cluster answer each
// other's queries, each on a connection of its own.
//
// Inputs are the neighbours to keep a stream to (Follow), messages (Send), streams that peers open,
// the gossip key, with which both sides prove that they belong to one clusterset, and the Credentials,
// with which they prove which node they are. Outputs are calls of its Host, which decides whom to
// believe. It must not know memberlist, why a daemon is a neighbour, what messages and queries contain,
// or who may sign statements.
package stream

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/meter"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/notify"
)

// DialTimeout bounds the time that a peer takes to answer and to prove who it is.
const DialTimeout = 2 * time.Second

const (
	// heartbeat is how often each stream sends something. readTimeout ends a stream on which
	// nothing came for many heartbeats; package observe decides how much sooner a machine is
	// probed.
	heartbeat = 500 * time.Millisecond
	// batch is how soon after a write the next one comes: what is queued meanwhile goes in one record
	// of TLS, and mostly in one packet. What comes alone does not wait.
	batch        = 10 * time.Millisecond
	readTimeout  = 10 * time.Second
	writeTimeout = 5 * time.Second
	// userTimeout ends a stream whose bytes are not acknowledged. Without it, TCP's own back-off
	// would keep a stream stuck for minutes after a partition has healed.
	userTimeout = 4 * time.Second
	// doubtedFor ends a stream to a daemon that is not believed to be its node: the node itself may be
	// elsewhere, or have proven meanwhile that it is there.
	doubtedFor   = 5 * time.Second
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// Host is the owner of the streams. Its methods are called from many goroutines, without any lock
// held.
type Host interface {
	// Addr returns where a neighbour listens now.
	Addr(neighbour clustermesh.Origin) netip.AddrPort
	// Missed is called with an address that Addr returned, where the neighbour did not prove who it is.
	Missed(neighbour clustermesh.Origin, addr netip.AddrPort)
	// Admit returns an error unless we may talk to the daemon that answers at an address, and
	// whether it is believed to be its node; and what takes its messages, if the connection carries
	// any. Accept returns an error unless the daemon that opened a stream from a host may talk to
	// us.
	Admit(p Peer, addr string) (s Session, believed bool, err error)
	Accept(p Peer, host string) (Session, error)
	// Connected is called when a stream to a neighbour begins, and whether both write on it. What
	// was in transit on the one before is lost.
	Connected(to clustermesh.Origin, bothWays bool)
	// Dropped is called when messages to a neighbour were dropped, because too many waited.
	Dropped(to clustermesh.Origin)
	// WrongKey is called with a host whose gossip key differs.
	WrongKey(host string)
}

// Session takes what comes on one connection with a peer.
type Session interface {
	// Receive takes a message; an empty one is a heartbeat. The bytes are valid only until it
	// returns. An error ends the stream. A peer that only asked who we are (Ask) sends none.
	Receive(message []byte) error
	// Trusted reports whether the peer is trusted now to be its node, so that it needs no share of the room
	// that others have. It can change.
	Trusted() bool
	// Close is called when the connection has ended.
	Close()
}

// Streams are all streams of a daemon. Its methods are safe for concurrent use.
type Streams struct {
	host     Host
	self     member.Peer
	mine     Credentials
	identity atomic.Pointer[identity]
	log      *slog.Logger
	news     notify.Signal

	mu       sync.Mutex
	senders  map[clustermesh.Origin]*sender
	waiting  []*sender // not started yet
	opened   opened
	accepted map[*tls.Conn]bool
	total    atomic.Int64

	services Services
	desk     desk    // of requests for statements
	queries  queries // that are answered now
	crowd    crowd   // of streams of peers that are not believed
}

// Services are what a daemon answers peers besides records. Each can be nil: then the daemon does
// not offer it.
type Services struct {
	Signer   Signer
	Answerer Answerer
	// Meter counts the bytes of connections that this daemon dials. Optional.
	Meter *meter.Meter
	// OneWay makes the daemon like an older one, which has only streams of one direction. It is for
	// tests.
	OneWay bool
}

// New makes what proves who this daemon is. It starts nothing.
func New(self member.Peer, keys gossipkey.Ring, mine Credentials, host Host, services Services, log *slog.Logger) (*Streams, error) {
	id, err := newIdentity(keys, self, mine)
	s := &Streams{
		host: host, self: self, mine: mine, log: log, news: notify.New(), services: services,
		senders: map[clustermesh.Origin]*sender{}, opened: opened{}, accepted: map[*tls.Conn]bool{},
	}
	s.identity.Store(id)
	return s, err
}

// Follow opens streams to the neighbours that are to have one (true), and closes those to others
// (false). Messages to a new neighbour can be sent at once; they wait for its stream.
func (s *Streams) Follow(neighbours map[clustermesh.Origin]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, wanted := range neighbours {
		switch sender := s.senders[o]; {
		case wanted && sender == nil:
			sender = newSender(o, &s.total)
			s.senders[o] = sender
			s.waiting = append(s.waiting, sender)
		case !wanted && sender != nil:
			sender.close()
			delete(s.senders, o)
		}
	}
	s.news.Poke()
}

// Send queues a message for a neighbour. It never blocks. A message is dropped if the queue is full
// or there is no stream; and if too much waits in all, so is the longest queue. The digest exchange
// repairs that.
func (s *Streams) Send(to clustermesh.Origin, message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sender := s.senders[to]; sender == nil || !sender.offer(message) {
		return
	}
	if s.total.Load() > maxQueuedInAll {
		longest := slices.MaxFunc(slices.Collect(maps.Values(s.senders)), func(a, b *sender) int { return cmp.Compare(a.waits(), b.waits()) })
		longest.drop()
	}
}

// Run maintains the streams to neighbours, and serves those that peers open, until ctx ends. opened
// receives what Handshake returned.
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
			if accepted, ok := conn.(*tls.Conn); ok {
				wg.Go(func() { s.accept(ctx, accepted) })
			} else {
				conn.Close() // nothing is known of the peer
			}
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

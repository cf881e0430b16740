// Package pool runs memberlist: who is there, who is gone, and one port for its streams and for ours.
//
// Inputs are this daemon's name, address and key, the addresses to join, and who may be a member (Admit);
// outputs are Events, the streams that are not memberlist's (Streams), and what memberlist says only in its
// log. What follows from any of it is decided elsewhere. It must not know records, probes or what streams
// carry. No other package imports memberlist.
package pool

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/notify"
)

// Config says which daemon a Pool speaks for, and where.
type Config struct {
	Self member.Peer
	// Bind is the address and port of memberlist (UDP, TCP) and of record streams (TCP).
	Bind netip.AddrPort
	// Advertise is what others dial.
	Advertise netip.AddrPort
	// Key is the 32-byte gossip key.
	Key []byte
	// Timeout bounds memberlist's own streams.
	Timeout time.Duration
	Log     *slog.Logger

	// Admit says whether a member's cluster has the name that it bears, else which UID has it. It is called with
	// memberlist's lock held, so it must not wait for anything that waits for the Pool.
	Admit func(member.Peer) (owner string, ok bool)
	// WrongKey gets the host whose packets cannot be decrypted, NoUDP the name of a member that answers
	// over TCP alone.
	WrongKey func(host string)
	NoUDP    func(peer string)
}

// Pool is the daemon's part in memberlist.
type Pool struct {
	*inbox
	port *port
	list *memberlist.Memberlist
}

// Open opens the sockets and starts memberlist. The error says what to do about a port in use.
func Open(cfg Config) (*Pool, error) {
	logs := &memberLog{log: cfg.Log, wrongKey: cfg.WrongKey, noUDP: cfg.NoUDP}
	port, err := listen(cfg.Bind, logs.logger())
	if err != nil {
		return nil, err
	}
	p := &Pool{inbox: &inbox{ready: notify.New()}, port: port}
	p.list, err = memberlist.Create(p.config(cfg, logs))
	if err != nil {
		_ = port.Shutdown()
		return nil, fmt.Errorf("gossip: start membership: %w", err)
	}
	return p, nil
}

// Close ends memberlist without saying goodbye: a daemon that stops is not a node that is gone.
func (p *Pool) Close() { _ = p.list.Shutdown() }

// Join tells memberlist of a daemon at an address, and it of us.
func (p *Pool) Join(addr netip.AddrPort) error {
	_, err := p.list.Join([]string{addr.String()})
	return err
}

// Streams gives the streams that peers opened and that are not memberlist's.
func (p *Pool) Streams() <-chan net.Conn { return p.port.streams }

// config sets memberlist up for a LAN of up to some hundred nodes: a death is decided in 2 to 5 s.
func (p *Pool) config(cfg Config, logs *memberLog) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = cfg.Self.String()
	c.Transport = p.port
	c.BindAddr, c.BindPort = cfg.Bind.Addr().String(), int(cfg.Bind.Port())
	c.AdvertiseAddr, c.AdvertisePort = cfg.Advertise.Addr().String(), int(cfg.Advertise.Port())
	c.Label = "strait"
	c.SecretKey = cfg.Key
	c.EnableCompression = false
	c.Logger, c.LogOutput = logs.logger(), nil
	c.TCPTimeout = cfg.Timeout
	c.ProbeInterval, c.ProbeTimeout = 500*time.Millisecond, 200*time.Millisecond
	c.IndirectChecks = 3
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 3, 3
	c.GossipInterval, c.GossipNodes = 100*time.Millisecond, 4
	c.RetransmitMult = 4
	c.PushPullInterval = 15 * time.Second
	c.GossipToTheDeadTime = 60 * time.Second
	c.DeadNodeReclaimTime = 30 * time.Second
	c.HandoffQueueDepth = 8192
	d := delegate{p.inbox, cfg.Admit, cfg.Self.UID}
	c.Events, c.Alive, c.Delegate = d, d, d
	return c
}

// Event is a member that joined or is gone, or was refused since its name belongs to another cluster.
type Event struct {
	Member member.Peer
	Addr   netip.AddrPort
	Alive  bool
	// Owner is the UID of the cluster that has the name of the refused member's; empty if it was not refused.
	Owner string
}

// inbox takes memberlist's events, which come with memberlist's lock held and must not wait for others.
type inbox struct {
	mu     sync.Mutex
	events []Event
	ready  notify.Signal
}

// Ready receives a value after events came.
func (i *inbox) Ready() <-chan struct{} { return i.ready }

// Events returns what came since it was last asked.
func (i *inbox) Events() []Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	events := i.events
	i.events = nil
	return events
}

func (i *inbox) put(e Event) {
	i.mu.Lock()
	i.events = append(i.events, e)
	i.mu.Unlock()
	i.ready.Poke()
}

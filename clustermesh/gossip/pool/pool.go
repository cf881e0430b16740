// Package pool runs memberlist: it reports which members are live and which are gone, and shares
// one port between memberlist's streams and ours.
//
// Inputs are this daemon's name, address and key, the addresses to join, and who may be a member
// (Admit). Outputs are Events, the streams that are not memberlist's (Streams), and what memberlist
// reports only in its log. The package draws no conclusions from these. It must not know records,
// probes or what streams carry. No other package imports memberlist.
package pool

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/meter"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/notify"
)

// Config is which daemon a Pool stands for, and where.
type Config struct {
	Self member.Peer
	// Bind is the address and port that memberlist (UDP, TCP) and record streams (TCP) share.
	Bind netip.AddrPort
	// Advertise is the address that others dial.
	Advertise netip.AddrPort
	// Keys are the gossip keys that are accepted. The first is used.
	Keys gossipkey.Ring
	// Timeout bounds memberlist's own streams.
	Timeout time.Duration
	Log     *slog.Logger

	// Admit reports whether the name of a member's cluster belongs to that cluster; if not, it
	// returns the owner's UID. It is called with memberlist's lock held, so it must not wait for
	// anything that waits for the Pool.
	Admit func(member.Peer) (owner string, ok bool)
	// Seats decide about room for a member, also with memberlist's lock held.
	Seats Seats
	// Pinged is called with the time that a member took to answer over UDP, where it did, and what its
	// clock showed then; zero if it did not say.
	Pinged func(m member.ID, at netip.Addr, rtt time.Duration, there time.Time)
	// NoUDP is called with the name of a member that answers over TCP only.
	NoUDP func(peer string)
	// Refused is called for whatever is refused. Strangers decide how often, so it must be cheap.
	Refused func(why member.Refusal, from netip.Addr)
	// TLS makes the connections secure.
	TLS TLS
	// Meter counts datagrams, and the bytes of connections that are accepted. Optional.
	Meter *meter.Meter
}

// Seats bounds the members.
type Seats interface {
	// Admit reports whether there is room for a member.
	Admit(member.ID) bool
	// Joined and Left note that a member is there, and is gone.
	Joined(member.ID)
	Left(member.ID)
}

// Pool is this daemon's memberlist.
type Pool struct {
	*inbox
	port *port
	keys *memberlist.Keyring
	list *memberlist.Memberlist
}

// Open opens the sockets and starts memberlist. The error contains what to do about a port in use.
func Open(cfg Config) (*Pool, error) {
	logs := &memberLog{log: cfg.Log, noUDP: cfg.NoUDP}
	inbox := &inbox{ready: notify.New(), addrs: map[netip.Addr]int{}}
	port, err := listen(cfg, inbox.knows)
	if err != nil {
		return nil, err
	}
	p := &Pool{inbox: inbox, port: port}
	p.keys, err = memberlist.NewKeyring(asBytes(cfg.Keys), cfg.Keys[0][:])
	if err == nil {
		p.list, err = memberlist.Create(p.config(cfg, logs))
	}
	if err != nil {
		_ = port.Shutdown()
		return nil, fmt.Errorf("gossip: start membership: %w", err)
	}
	return p, nil
}

// Close stops memberlist without announcing it, because the node is not gone when its daemon stops.
func (p *Pool) Close() { _ = p.list.Shutdown() }

// Join has memberlist exchange members with the daemon at an address.
func (p *Pool) Join(addr netip.AddrPort) error {
	_, err := p.list.Join([]string{addr.String()})
	return err
}

// Rekey replaces the keys that are accepted, and the one that is used.
func (p *Pool) Rekey(keys gossipkey.Ring) error {
	for _, key := range asBytes(keys) {
		if err := p.keys.AddKey(key); err != nil {
			return err
		}
	}
	if err := p.keys.UseKey(keys[0][:]); err != nil {
		return err
	}
	if err := p.port.packets.rekey(keys); err != nil {
		return err
	}
	// The last first: memberlist moves the keys behind the one that it removes, in a slice that others
	// may be reading.
	for _, key := range slices.Backward(p.keys.GetKeys()) {
		if !slices.Contains(keys, gossipkey.Key(key)) {
			if err := p.keys.RemoveKey(key); err != nil {
				return err
			}
		}
	}
	return nil
}

func asBytes(keys gossipkey.Ring) (out [][]byte) {
	for _, k := range keys {
		out = append(out, slices.Clone(k[:]))
	}
	return out
}

// Streams receives the streams that peers opened and that are not memberlist's. Their peers have
// proven that they have the gossip key.
func (p *Pool) Streams() <-chan net.Conn { return p.port.streams }

// config sets up memberlist for a LAN of up to a few hundred nodes. It declares a member dead
// within 2 to 5 s.
func (p *Pool) config(cfg Config, logs *memberLog) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = cfg.Self.String()
	c.Transport = p.port
	c.BindAddr, c.BindPort = cfg.Bind.Addr().String(), int(cfg.Bind.Port())
	c.AdvertiseAddr, c.AdvertisePort = cfg.Advertise.Addr().String(), int(cfg.Advertise.Port())
	c.Label = label
	c.Keyring = p.keys
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
	d := delegate{p.inbox, cfg.Admit, cfg.Seats, cfg.Refused, cfg.Self.UID, cfg.Pinged}
	c.Events, c.Alive, c.Delegate, c.Ping = d, d, d, d
	return c
}

// Event is a member that joined, is gone, or was refused because its cluster's name belongs to
// another cluster.
type Event struct {
	Member member.Peer
	Addr   netip.AddrPort
	Alive  bool
	// Owner is the UID of the cluster that owns the name of a refused member's cluster; empty if
	// the member was not refused.
	Owner string
}

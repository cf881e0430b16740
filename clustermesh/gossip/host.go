package gossip

import (
	"errors"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
)

// largeMessage is the size, in bytes, from which messages are decoded one at a time.
const largeMessage = 64 << 10

// errSelf refuses a stream from a daemon of this node's name.
var errSelf = errors.New("it has the name of this node")

// host is the Gossip as its streams see it.
type host struct{ *Gossip }

var _ stream.Host = host{}

// Addr implements stream.Host.
func (h host) Addr(o clustermesh.Origin) netip.AddrPort {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.contacts.Addr(o)
}

// Admit implements stream.Host: it refuses a peer whose cluster has the name of another.
func (h host) Admit(p member.Peer, addr string) error {
	owner, ok := h.clusters.admit(p)
	if ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse(p, owner, addr)
	return member.ErrOtherCluster
}

// Accept implements stream.Host: no daemon but this one may have its name.
func (h host) Accept(p member.Peer, addr string) error {
	if err := h.Admit(p, addr); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Origin == h.cfg.Self {
		if p.Boot != h.self.Boot {
			h.twin(addr)
		}
		return errSelf
	}
	h.solved("key " + addr) // restarted with the right one
	return nil
}

// Opened implements stream.Host.
func (h host) Opened(from clustermesh.Origin) { h.streamed(from, +1) }

// Closed implements stream.Host.
func (h host) Closed(from clustermesh.Origin) { h.streamed(from, -1) }

func (g *Gossip) streamed(from clustermesh.Origin, delta int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.contacts.Stream(from, delta, time.Now())
	g.events.Poke() // a stream that broke is a reason to look
}

// Receive implements stream.Host: it lets one message of a peer into the replica.
func (h host) Receive(from clustermesh.Origin, frame []byte) error {
	var message replica.Message
	if len(frame) > 0 {
		var err error
		if message, err = h.decode(frame); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.contacts.Frame(from, time.Now())
	if message == nil {
		return nil
	}
	synced := h.replica.Synced()
	h.apply(h.replica.Receive(from, message))
	if !synced && h.replica.Synced() {
		h.changed.Poke()
	}
	return nil
}

// decode reads large messages one at a time: while it is read, a message takes several times its size, and
// when the daemon starts all peers send at once.
func (g *Gossip) decode(frame []byte) (replica.Message, error) {
	if len(frame) > largeMessage {
		g.decoding.Lock()
		defer g.decoding.Unlock()
	}
	return replica.Decode(frame)
}

// Renewed implements stream.Host.
func (h host) Renewed(to clustermesh.Origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.apply(h.replica.Exchange(to))
}

// WrongKey implements stream.Host. memberlist says the same of packets.
func (h host) WrongKey(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problem("key "+addr, wrongKeyProblem(addr), problemLife)
}

func (h host) noUDP(peer string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problem("udp "+peer, udpProblem(peer), problemLife)
}

// admitRecord refuses a record that a peer holds of another cluster with a known name. The lock is held, or
// nothing runs.
func (g *Gossip) admitRecord(by replica.Peer, r clustermesh.Record) (clustermesh.Problem, bool) {
	owner, ok := g.clusters.belongs(r.Origin.Cluster, r.UID)
	if ok {
		return clustermesh.Problem{}, true
	}
	return passedOnProblem(r.Origin.Cluster, owner, r.UID, by), false
}

// refuse reports two clusters of one name. The lock is held.
func (g *Gossip) refuse(p member.Peer, owner, addr string) {
	problem := clusterProblem(p.Origin.Cluster, owner, p.UID, addr, p.Origin.Cluster == g.cfg.Self.Cluster)
	// Of several addresses the first is shown, but one that can be dialled rather than where a stream came from.
	dialled := "cluster " + string(p.Origin.Cluster) + " " + p.UID
	seen := "cluster stream " + string(p.Origin.Cluster) + " " + p.UID
	key := dialled
	if _, err := netip.ParseAddrPort(addr); err != nil && !g.problems.has(dialled) {
		key = seen
	} else {
		g.solved(seen)
	}
	if g.problems.has(key) {
		problem = g.problems[key].problem
	}
	g.problem(key, problem, problemLife)
}

// twin reports another daemon of this node's name. The lock is held.
func (g *Gossip) twin(addr string) {
	g.problem("duplicate "+g.cfg.Self.String(), duplicateProblem(g.cfg.Self, g.cfg.Advertise.String(), addr), problemLife)
}

package gossip

import (
	"errors"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
)

// largeMessage is the size, in bytes, above which messages are decoded one at a time.
const largeMessage = 64 << 10

// errSelf refuses a stream from a daemon with this node's name.
var errSelf = errors.New("the peer has the name of this node")

// host implements stream.Host for a Gossip.
type host struct{ *Gossip }

var _ stream.Host = host{}

// Addr implements stream.Host.
func (h host) Addr(o clustermesh.Origin) netip.AddrPort {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.place(o, time.Now())
}

// place returns where to dial a node. The lock is held.
func (g *Gossip) place(o clustermesh.Origin, now time.Time) netip.AddrPort {
	r, _ := g.replica.Record(o)
	return g.contacts.Place(o, r, now)
}

// trusts reports whether a node is at an address by more than memberlist's word. The lock is held.
func (g *Gossip) trusts(o clustermesh.Origin, at netip.Addr) bool {
	r, _ := g.replica.Record(o)
	return g.contacts.Trusted(o, r, at)
}

// Missed implements stream.Host.
func (h host) Missed(o clustermesh.Origin, at netip.AddrPort) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dialled(o, at, false)
}

// dialled notes whether a node proved who it is where it was dialled. The lock is held.
func (g *Gossip) dialled(o clustermesh.Origin, at netip.AddrPort, proven bool) {
	r, _ := g.replica.Record(o)
	if g.contacts.Dialled(o, r, at, proven, time.Now()) {
		g.stale = true
		g.changed.Poke()
	}
}

// Admit implements stream.Host. It refuses a peer of a cluster that is not pinned if the name of its cluster
// belongs to another cluster.
func (h host) Admit(p stream.Peer, addr string) (believed bool, err error) {
	s, err := h.judge(p, addr)
	believed = s != nil && s.first == authority.Believed
	if at, wrong := netip.ParseAddrPort(addr); wrong == nil && err == nil && believed && p.Origin != h.cfg.Self {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.trust.Pins() != nil && h.trust.Proves(peerOf(p, s.stated)) {
			h.dialled(p.Origin, at, true)
		}
	}
	return believed, err
}

// Accept implements stream.Host. It refuses what Admit refuses, and a daemon with this node's name. One
// that is not believed to be its node may ask a signer, and pass on records.
func (h host) Accept(p stream.Peer, addr string) (stream.Session, error) {
	s, err := h.judge(p, addr)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Origin == h.cfg.Self {
		if p.Boot != h.self.Boot && s.first == authority.Believed {
			h.twin(addr)
		}
		return nil, errSelf
	}
	h.solved("key " + addr) // the daemon was restarted with the right key
	return s, nil
}

// judge decides about a peer, and notes that its node is there if it is believed to be that.
func (h host) judge(p stream.Peer, addr string) (*session, error) {
	stated, generation := h.shows(p)
	s := &session{Gossip: h.Gossip, peer: p, addr: addr, stated: stated, generation: generation}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.first = s.belief()
	if s.first == authority.Impostor {
		h.trust.RefusePeer()
		h.impostor(p, addr)
		return s, nil
	}
	if owner, ok := h.clusters.admit(p.Peer); !ok {
		h.refuse(p.Peer, owner, addr)
		return nil, member.ErrOtherCluster
	}
	if p.Origin != h.cfg.Self && s.first == authority.Believed {
		h.sign(p.Origin, func(now time.Time) { h.contacts.Met(p.ID, now) })
	}
	return s, nil
}

// decode decodes large messages one at a time. While it is decoded, a message takes several times
// its size in memory, and when the daemon starts, all peers send at once.
func (g *Gossip) decode(frame []byte) (replica.Message, error) {
	if len(frame) == 0 {
		return nil, nil // a heartbeat
	}
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

// WrongKey implements stream.Host. Of all hosts that opened a connection with a wrong key, a few are
// named: strangers can have many addresses.
func (h host) WrongKey(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if key := "key " + addr; h.problems.has(key) || h.problems.count("key ") < maxWrongKeys {
		h.strange(key, wrongKeyProblem(addr))
	}
}

func (h host) noUDP(peer string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strange("udp "+peer, udpProblem(peer))
}

// admitRecord is replica.Config.Admit: it refuses what its origin may not say and, of a cluster that is not
// pinned, records of another cluster than its name belongs to. The lock is held, or nothing runs yet.
func (g *Gossip) admitRecord(by replica.Peer, e replica.Entry) (clustermesh.Record, clustermesh.Problem, bool) {
	r, now := e.Record, time.Now()
	if err := member.CheckUID(r.UID); err != nil {
		return clustermesh.Record{}, g.trust.Refuse(r.Origin, by, err, now), false
	}
	if owner, ok := g.clusters.belongs(r.Origin.Cluster, r.UID); !ok {
		return clustermesh.Record{}, passedOnProblem(r.Origin.Cluster, owner, r.UID, by), false
	}
	return g.trust.Admit(by, e, now)
}

// refuse reports two clusters with the same name. The lock is held.
func (g *Gossip) refuse(p member.Peer, owner, addr string) {
	problem := clusterProblem(p.Origin.Cluster, owner, p.UID, addr, p.Origin.Cluster == g.cfg.Self.Cluster)
	// Of several addresses, the first one is shown. An address that can be dialled is preferred to
	// the host that a stream came from.
	dialled := "cluster " + string(p.Origin.Cluster) + " " + p.UID
	seen := "cluster stream " + string(p.Origin.Cluster) + " " + p.UID
	key := dialled
	if _, err := netip.ParseAddrPort(addr); err != nil && !g.problems.has(dialled) {
		key = seen
	} else {
		g.solved(seen)
	}
	if shown, any := g.problems.shown(key); any {
		problem = shown
	}
	if p.Origin.Cluster == g.cfg.Self.Cluster {
		g.problem(key, problem, problemLife)
		return
	}
	g.strange(key, problem)
}

// twin reports another daemon with this node's name. The lock is held.
func (g *Gossip) twin(addr string) {
	g.problem("duplicate "+g.cfg.Self.String(), duplicateProblem(g.cfg.Self, g.cfg.Advertise.String(), addr), problemLife)
}

package node

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/trust"
)

// ErrSelf refuses a stream from a daemon with this node's name.
var ErrSelf = errors.New("the peer has the name of this node")

// Peer is the daemon at the other end of a connection: who it claims to be, the key that it has proven to
// have, and the statement that it shows about that.
type Peer struct {
	member.Peer
	Key       authority.PublicKey
	Statement []byte
}

// Shown is whether what a peer shows proves that its key is its node's, by the pins of a generation.
type Shown struct {
	Stated     bool
	Generation uint64
}

// Pins returns the clusters that are believed, nil if all are, and their generation. To verify what a peer
// shows takes time, so that can be done before Meet.
func (s *statements) Pins() (pins authority.Pins, generation uint64) {
	return s.trust.Pins(), s.trust.Generation()
}

// Session is one connection of a peer.
type Session struct {
	node  *Node
	peer  Peer
	addr  string
	shown Shown
	// first is how far the peer was trusted when the connection was made.
	first   authority.PeerTrust
	judged  judgement
	counted bool // by contacts
	opened  bool // by the peer
	guest   bool // see Node.guest
}

// judgement is how far a peer is trusted, and on which basis; none is the zero one.
type judgement struct {
	made  bool
	basis trust.Basis
	trust authority.PeerTrust
}

// meet decides about a peer, and notes that its node is there if it is believed to be that.
func (n *Node) meet(p Peer, shown Shown, addr string) (*Session, error) {
	s := &Session{node: n, peer: p, addr: addr, shown: shown}
	s.first = s.peerTrust()
	if s.first == authority.Impostor {
		n.trust.RefusePeer()
		n.impostor(p, addr)
		return s, nil
	}
	if owner, ok := n.cfg.Owners.Admit(p.Origin.Cluster, p.UID, n.now); !ok {
		n.refuse(p.Peer, owner, addr)
		return nil, member.ErrOtherCluster
	}
	if p.Origin != n.cfg.Self && s.first == authority.Trusted {
		n.alive(n.contacts.Met(p.ID, n.now))
	}
	return s, nil
}

// Answered decides about the daemon that answered at an address: whether this one may talk to it,
// and whether it is believed to be its node. It refuses a peer of a cluster that is not pinned if
// the name of its cluster belongs to another cluster. The session is for what the peer sends on
// this connection, if anything.
func (n *Node) Answered(p Peer, shown Shown, addr string, now time.Time) (s *Session, believed bool, err error) {
	n.now = now
	s, err = n.meet(p, shown, addr)
	if err != nil {
		return nil, false, err
	}
	believed = s.first == authority.Trusted
	at, wrong := netip.ParseAddrPort(addr)
	if wrong == nil && believed && p.Origin != n.cfg.Self && n.trust.Pins() != nil && n.trust.Proves(s.proof()) {
		n.dialled(p.Origin, at, true)
	}
	return s, believed, nil
}

// Opened decides about a daemon that opened a stream from a host. It refuses what Answered refuses, and a
// daemon with this node's name. One that is not believed to be its node may request a statement, and pass on
// records.
func (n *Node) Opened(p Peer, shown Shown, addr string, now time.Time) (*Session, error) {
	n.now = now
	s, err := n.meet(p, shown, addr)
	if err != nil {
		return nil, err
	}
	if p.Origin == n.cfg.Self {
		if p.Boot != n.self.Boot && s.first == authority.Trusted {
			n.twin(addr)
		}
		return nil, ErrSelf
	}
	n.solved("key " + addr) // the daemon was restarted with the right key
	s.opened = true
	return s, nil
}

// Receive takes a message; nil is a heartbeat. Records are judged by their seals. Only a peer that
// is believed to be its node is a sign of life of that node, and can complete the first exchange;
// where clusters are pinned, no peer of another cluster can complete it.
func (s *Session) Receive(message replica.Message, now time.Time) {
	n := s.node
	n.now = now
	level := s.peerTrust()
	switch level {
	case authority.Trusted:
		s.heard()
	case authority.Impostor:
		n.impostor(s.peer, s.addr)
	}
	if message == nil {
		return
	}
	if level != authority.Trusted || n.trust.Pins() != nil && !n.trust.Pinned(s.peer.Origin.Cluster) {
		message = replica.Doubted(message)
	}
	synced := n.replica.Synced()
	if links, is := message.(*replica.Links); is {
		n.receiveLinks(s.peer.Origin, links)
		return
	}
	out := n.replica.Receive(s.peer.Origin, message)
	n.arrived(out.Changed, s.peer.Origin)
	n.apply(out)
	if !synced && n.replica.Synced() {
		n.actions.Changed = true
	}
}

// Trusted reports whether the peer is trusted now to be its node. A peer of a cluster that is not pinned
// proves nothing where others are.
func (s *Session) Trusted() bool {
	return s.peerTrust() == authority.Trusted && (s.node.trust.Pins() == nil || s.node.trust.Pinned(s.peer.Origin.Cluster))
}

// peerTrust judges the peer by what is known now.
func (s *Session) peerTrust() authority.PeerTrust {
	store := s.node.trust
	basis := store.Basis(s.peer.Origin.Cluster)
	if s.judged.made && s.judged.basis == basis {
		return s.judged.trust
	}
	if s.shown.Generation != store.Generation() {
		s.shown.Generation = store.Generation()
		s.shown.Stated = store.Pins().Proves(s.peer.Origin, s.peer.Key, s.peer.Statement) == nil
	}
	s.judged = judgement{true, basis, store.PeerTrust(s.proof())}
	return s.judged.trust
}

// proof returns what the peer proves.
func (s *Session) proof() trust.Peer {
	return trust.Peer{Origin: s.peer.Origin, Key: s.peer.Key, Stated: s.shown.Stated}
}

// heard notes a frame from the node.
func (s *Session) heard() {
	n := s.node
	if s.counted {
		n.alive(n.contacts.Frame(s.peer.ID, n.now))
		return
	}
	s.counted = true
	if s.guest = s.opened && s.Trusted(); s.guest {
		n.guest(s.peer.Origin, +1)
	}
	n.alive(n.contacts.Stream(s.peer.ID, +1, n.now))
	n.actions.Beat = true
}

// Close ends the session.
func (s *Session) Close(now time.Time) {
	n := s.node
	n.now = now
	if s.counted {
		if s.guest {
			n.guest(s.peer.Origin, -1)
		}
		n.alive(n.contacts.Stream(s.peer.ID, -1, now))
		n.actions.Beat = true // a broken stream can make a probe due
	}
}

// Knows reports whether a peer has the key of a node of this cluster whose record is here.
func (s *statements) Knows(p Peer, shown Shown) bool {
	proof := trust.Peer{Origin: p.Origin, Key: p.Key, Stated: shown.Stated}
	return p.Origin.Cluster == s.cfg.Self.Cluster && s.trust.Pinned(p.Origin.Cluster) && s.trust.Proves(proof)
}

// Query returns an error unless a peer is a node of this cluster. It must prove that where the cluster is
// pinned. Where everyone who has the gossip key is believed, its name is enough.
func (s *statements) Query(p Peer, shown Shown) error {
	switch {
	case p.Origin.Cluster != s.cfg.Self.Cluster:
		return fmt.Errorf("%s is of another cluster", p.Origin)
	case s.trust.Pins() != nil && !s.Knows(p, shown):
		return fmt.Errorf("the daemon does not prove that it is that of %s", p.Origin)
	}
	return nil
}

// Refused returns how many records were refused in this life of the daemon, by reason, and how many peers
// that did not prove to be their nodes.
func (s *statements) Refused() (records map[string]uint64, peers uint64) {
	return s.trust.Refused(), s.trust.RefusedPeers()
}

// impostor reports a peer that claims to be a node and does not prove it, one for each cluster.
func (c *core) impostor(p Peer, addr string) {
	key := "impostor " + string(p.Origin.Cluster)
	reported := trust.ImpostorProblem(p.Origin, addr)
	if shown, any := c.problems.shown(key); any {
		reported = shown // one example at a time: each change is a line of the log
	}
	c.problem(key, reported, ProblemLife)
}

// WrongKey reports a host that opened a connection with a wrong gossip key. A few are named: strangers can
// have many addresses.
func (c *core) WrongKey(addr string, now time.Time) {
	c.now = now
	if key := "key " + addr; c.problems.has(key) || c.problems.count("key ") < maxWrongKeys {
		c.strange(key, wrongKeyProblem(addr))
	}
}

// NoUDP reports a peer that answers over TCP only.
func (c *core) NoUDP(peer string, now time.Time) {
	c.now = now
	c.strange("udp "+peer, udpProblem(peer))
}

// refuse reports two clusters with the same name.
func (c *core) refuse(p member.Peer, owner, addr string) {
	own := p.Origin.Cluster == c.cfg.Self.Cluster
	problem := clusterProblem(p.Origin.Cluster, owner, p.UID, addr, own)
	// Of several addresses, the first one is shown. An address that can be dialled is preferred to
	// the host that a stream came from.
	dialled := "cluster " + string(p.Origin.Cluster) + " " + p.UID
	seen := "cluster stream " + string(p.Origin.Cluster) + " " + p.UID
	key := dialled
	if _, err := netip.ParseAddrPort(addr); err != nil && !c.problems.has(dialled) {
		key = seen
	} else {
		c.solved(seen)
	}
	if shown, any := c.problems.shown(key); any {
		problem = shown
	}
	if own {
		c.problem(key, problem, ProblemLife)
		return
	}
	c.strange(key, problem)
}

// twin reports another daemon with this node's name.
func (c *core) twin(addr string) {
	c.problem("duplicate "+c.cfg.Self.String(), duplicateProblem(c.cfg.Self, c.cfg.Advertise.String(), addr), ProblemLife)
}

package observe

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

// Timing of contacts with other nodes.
const (
	// stalled is how long a stream can carry nothing before the machine is probed: between two and
	// three heartbeats.
	stalled = 1300 * time.Millisecond
	// silentRounds is how many probes in a row must be silent before the machine counts as silent.
	// quietRounds is used instead if the machine answered after its daemon was gone: then traffic
	// does not wait for the verdict, and a wrong one would last longer.
	silentRounds = 2
	quietRounds  = 4
	// polledFor is for how long a machine counts as there that has answered a probe. Who wants to
	// claim that another node is silent needs more than half of its cluster at once.
	polledFor = 3 * time.Second
	// holdDown is how long a machine that was silent must answer before it counts as back, unless
	// its daemon is heard. A booting machine answers long before its pods do: until the kubelet and the
	// container runtime are up, and have started strait's own pod, takes 25 s and more.
	holdDown = time.Minute
	// reprobe is the pause between probes of a lost node, before jitter.
	reprobe = time.Second
	// lostRounds is how many probes in a row must be silent before a machine counts as lost for long:
	// about three minutes. From then on, the pause is lostReprobe. Its daemon is heard at once when it
	// is back, so that only a machine without a daemon is noticed later.
	lostRounds  = 120
	lostReprobe = 15 * time.Second
	// duplicateAge is how long two lives of one node can overlap without being reported: after a
	// restart elsewhere, they overlap until memberlist has noticed that the first life is gone.
	duplicateAge = 8 * time.Second
	// goneRounds is how many silent probes in a row outweigh memberlist, which decides sooner unless
	// it learns that the node lives: what others report of it can be replayed, or made up by a holder of
	// the gossip key. So do as many that the machine answers, if its daemon sends nothing at all.
	goneRounds = 6
	// metGrace is how long a member has to open a stream before it is asked who it is, and metAge how
	// long before it became a member its daemon can have proven that it is there.
	metGrace = 300 * time.Millisecond
	metAge   = 5 * time.Second
	// oneSidedAfter is how long a member can take to open a stream before it counts as one that has
	// not heard of this node.
	oneSidedAfter = time.Second
	// maxProbing bounds how many machines are probed at once, and maxAsking how many members are asked.
	maxProbing = 64
	maxAsking  = 32
	// maxAddrs is how many of the underlay addresses that a node lists are used. probeBudget is how
	// many addresses are probed in a second: others choose what their records list, and must not
	// choose how much this node sends to whom.
	maxAddrs    = 4
	probeBudget = 300
)

// Verdict is the result of probing a machine.
type Verdict uint8

const (
	// Blind: the probe could not be made or ran late, so it means nothing about the machine.
	Blind Verdict = iota
	// Silent: nothing answered on any address.
	Silent
	// Answered: the machine answered, if only by refusing the connection.
	Answered
)

// contact is what is observed of one node.
type contact struct {
	origin    clustermesh.Origin
	at        int                          // its slot
	far       bool                         // it is of another cluster
	follow    follow                       // the stream that there should be
	vouched   bool                         // relays hear its cluster
	suspected bool                         // relays do not hear it any more
	claimed   bool                         // its cluster takes it for dead
	denied    bool                         // since then it was asked, and proved nothing
	written   written                      // who wrote its record
	shown     clustermesh.Contact          // what the index has of it
	lives     []life                       // members that memberlist calls alive: nearly always one
	metAt     time.Time                    // when a life of the daemon last proved that it is there; see Contacts.Met
	metBoot   uint64                       // which life that was
	metAddr   netip.AddrPort               // where a dial proved who it is
	stated    bool                         // one of those was an address that its record names
	bad       map[netip.AddrPort]time.Time // where and when a dial proved nothing
	asking    bool
	ask       time.Time      // earliest time to ask it for that proof
	addr      netip.AddrPort // where the node was last a member
	streams   int            // open streams from it
	streamed  bool           // it had a stream since it last joined
	framed    time.Time      // last frame on a stream
	heard     time.Time      // last sign of life of its daemon
	seen      time.Time      // when the last probe that its machine answered began
	answered  bool           // the last probe was answered
	since     time.Time      // first answer after an unanswered probe; zero once silent
	rounds    int            // silent probes in a row
	mute      int            // answered probes in a row while its streams carried nothing
	probing   bool
	due       time.Time // earliest time of the next probe
}

// written is whether there is a record of a node, when the life that wrote it began, and the one
// that it names.
type written struct {
	known       bool
	ofNode      bool // it describes the node
	epoch, life uint64
	// speaks is what the node's daemon understands.
	speaks uint8
	// relay is what it says about being a relay.
	relay clustermesh.RelayUse
}

// older reports whether the node's daemon does not know that few nodes of a cluster decide.
func (w written) older() bool { return w.ofNode && w.speaks < clustermesh.SpeaksFew }

// wrote takes note of the node's record.
func (n *contact) wrote(rec clustermesh.Record, known bool) {
	n.written = written{known: known, epoch: rec.Stamp.Epoch}
	if rec.Content.Node != nil {
		n.written.ofNode, n.written.life = true, rec.Content.Node.Life
		n.written.speaks, n.written.relay = rec.Content.Node.Speaks, rec.Content.Node.Relay
	}
}

type life struct {
	boot  uint64
	addr  netip.AddrPort
	since time.Time
	met   bool // since then, the daemon has proven that it is there
	gone  bool // memberlist calls it gone, and its stream carries frames all the same
}

// life returns a life that is a member; nil if it is not one.
func (n *contact) life(boot uint64) *life {
	for i := range n.lives {
		if n.lives[i].boot == boot {
			return &n.lives[i]
		}
	}
	return nil
}

// met reports whether a life that is a member has proven that it is there.
func (n *contact) met() bool {
	for _, l := range n.lives {
		if l.met {
			return true
		}
	}
	return false
}

// unmeet forgets that.
func (n *contact) unmeet() {
	n.metAt = time.Time{}
	for i := range n.lives {
		n.lives[i].met = false
	}
}

// state is the contact with the node in any of its lives.
func (n *contact) state() clustermesh.Contact {
	limit := silentRounds
	if !n.since.IsZero() {
		limit = quietRounds
	}
	switch {
	case n.met():
		return clustermesh.Alive
	case n.rounds >= limit:
		return clustermesh.Silent
	case n.vouched && !n.denied && !n.follow.wanted && len(n.lives) > 0:
		return clustermesh.Reported
	case n.answered:
		return clustermesh.Quiet
	}
	return clustermesh.Held
}

// of returns the contact with the life that wrote the node's record. If the daemon is heard but has
// not published in its new life, the record is from an earlier life. Of that life, only the machine
// is left: Quiet.
func (n *contact) of() clustermesh.Contact {
	if s := n.state(); s != clustermesh.Alive {
		return s
	}
	for _, l := range n.lives {
		if l.met && (l.boot <= n.written.epoch || l.boot == n.written.life) {
			return clustermesh.Alive
		}
	}
	return clustermesh.Quiet
}

// back reports whether a machine that was silent has answered for long enough.
func (n *contact) back(now time.Time) bool {
	return n.answered && now.Sub(n.since) >= holdDown
}

// join notes a member at an address. It is no sign of life by itself.
func (n *contact) join(boot uint64, addr netip.AddrPort, now time.Time) {
	heard := n.streams > 0 && now.Sub(n.framed) <= stalled || now.Sub(n.metAt) < metAge
	l := life{boot: boot, addr: addr, since: now, met: boot == n.metBoot && !n.metAt.IsZero() && heard}
	if len(n.lives) == 0 {
		n.ask = now.Add(n.grace())
		if n.due.Before(n.ask) {
			n.due = n.ask
		}
	}
	if known := n.life(boot); known != nil {
		*known = l
	} else {
		n.lives = append(n.lives, l)
	}
	n.addr = addr
	if l.met {
		n.heard = now
		n.revive(now)
		n.streamed = n.streams > 0
	}
}

// isFresh reports whether the daemon is alive, and its machine has just shown that it is there: by a
// stream, or by answering a probe.
func (n *contact) isFresh(now time.Time) bool {
	return n.state() == clustermesh.Alive && n.rounds == 0 && (now.Sub(n.framed) <= stalled || now.Sub(n.seen) <= polledFor)
}

// isHeard reports whether a life proves all the time that it is there.
func (n *contact) isHeard(boot uint64, now time.Time) bool {
	l := n.life(boot)
	return l != nil && l.met && boot == n.metBoot && n.streams > 0 && now.Sub(n.framed) <= stalled
}

// leave notes that a member is gone.
func (n *contact) leave(boot uint64, now time.Time) {
	n.lives = slices.DeleteFunc(n.lives, func(l life) bool { return l.boot == boot })
	if n.met() {
		return
	}
	if len(n.lives) == 0 && boot == n.metBoot { // a later life can prove itself before this one is known to be gone
		n.metAt = time.Time{}
	}
	if n.rounds == 0 && !n.answered {
		n.due = now
	}
}

// meet notes that a life of the daemon has proven that it is there.
func (n *contact) meet(boot uint64, now time.Time) {
	if !n.met() || n.mute > 0 {
		n.streamed = n.streams > 0
	}
	if l := n.life(boot); l != nil {
		l.met = true
	}
	n.metBoot, n.metAt, n.heard = boot, now, now
	n.revive(now)
}

// known reports whether nothing but times changes if a life proves again that it is there.
func (n *contact) known(boot uint64) bool {
	l := n.life(boot)
	return l != nil && l.met && boot == n.metBoot && !n.answered && n.since.IsZero() && n.rounds == 0 && n.mute == 0
}

// unmet reports whether to ask a member for a proof that it is there.
func (n *contact) unmet(now time.Time) bool {
	return n.isUnproven() && !n.asking && !now.Before(n.ask)
}

// isUnproven reports whether it is a member that is to prove that it is there.
func (n *contact) isUnproven() bool {
	state := n.state()
	return len(n.lives) > 0 && (!state.Heard() || n.mute > 0 || n.claimed && state == clustermesh.Reported)
}

// oneSided reports whether the node is a member here, and opens no stream to this node.
func (n *contact) oneSided(now time.Time) bool {
	if len(n.lives) == 0 || n.streams > 0 {
		return false
	}
	for _, l := range n.lives {
		if now.Sub(l.since) <= oneSidedAfter {
			return false
		}
	}
	return true
}

// suspect reports whether a live member's stream is gone or has fallen silent.
func (n *contact) suspect(now time.Time) bool {
	return n.streamed && (n.streams == 0 || now.Sub(n.framed) > stalled)
}

// isLost reports whether to probe the machine for another reason than a stream that falls silent.
func (n *contact) isLost() bool {
	return !n.state().Heard() || n.streamed && n.streams == 0 || n.suspected && !n.streamed
}

// wanted reports whether the machine should be probed now.
func (n *contact) wanted(now time.Time) bool {
	return !n.probing && !now.Before(n.due) && (n.isLost() || n.suspect(now))
}

// revive forgets the results of probes, on a sign of life.
func (n *contact) revive(now time.Time) {
	n.framed, n.answered, n.since, n.rounds, n.mute = now, false, time.Time{}, 0, 0
}

// probed notes the verdict of a probe that began at began.
func (n *contact) probed(v Verdict, began, now time.Time, rng *rand.Rand) {
	n.probing = false
	n.due = began.Add(jitter(n.pause(), rng))
	switch {
	case n.heard.After(began):
		// The daemon was heard meanwhile, so the verdict is out of date.
	case v == Answered:
		n.seen = began
		if n.state() == clustermesh.Alive && !n.streamed {
			return // it was only polled
		}
		if !n.answered {
			n.since = now
		}
		n.answered, n.rounds = true, 0
		if n.mute++; n.mute >= goneRounds {
			n.unmeet()
		}
	case v == Silent:
		n.answered, n.mute = false, 0
		n.rounds++
		if n.rounds >= goneRounds {
			n.unmeet()
		}
		if n.state() != clustermesh.Silent {
			n.due = now
		} else {
			n.since = time.Time{}
		}
	}
}

// pause is how long to wait before the next probe.
func (n *contact) pause() time.Duration {
	if n.rounds >= lostRounds {
		return lostReprobe
	}
	return reprobe
}

// where returns the address of the life that last proved that it is there, if it is a member;
// otherwise that of the member that started last, or where the node was last a member. A holder of
// the gossip key can name lives and addresses.
func (n *contact) where() netip.AddrPort {
	if l := n.life(n.metBoot); l != nil {
		return l.addr
	}
	addr := n.addr
	var boot uint64
	for _, l := range n.lives {
		if l.boot >= boot {
			boot, addr = l.boot, l.addr
		}
	}
	return addr
}

// duplicates returns the addresses of lives older than duplicateAge, if there is more than one
// address.
func (n *contact) duplicates(now time.Time) (addrs []netip.AddrPort) {
	seen := map[netip.AddrPort]bool{}
	for _, l := range n.lives {
		if now.Sub(l.since) > duplicateAge && !seen[l.addr] {
			seen[l.addr] = true
			addrs = append(addrs, l.addr)
		}
	}
	if len(addrs) < 2 {
		return nil
	}
	return addrs
}

// jitter returns d, randomly varied by ±50 %, so that nodes do not act in step.
func jitter(d time.Duration, rng *rand.Rand) time.Duration {
	return d/2 + time.Duration(rng.Int64N(int64(d)))
}

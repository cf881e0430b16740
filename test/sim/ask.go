package sim

import (
	"errors"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/observe"
	"strait.io/strait/clustermesh/trust"
)

// Timing of what a daemon asks, as in packages gossip and probe.
const (
	rejoin       = 5 * time.Second
	firstJoin    = time.Second
	probeTimeout = 700 * time.Millisecond
)

var (
	errRefused = errors.New("connection refused")
	errTimeout = errors.New("no answer")
	errOther   = errors.New("another daemon answers")
)

// answer is what a dial leads to.
type answer struct {
	machine  *Machine
	peer     member.Peer
	session  *node.Session // the other side's; nil if the answer is this daemon's own
	own      *node.Session // this side's
	believed bool
	err      error
}

// connect opens a connection to an address, with the handshake in which both sides prove who they are.
func (m *Machine) connect(at netip.AddrPort, done func(answer)) {
	w, t := m.net, m.net.at[at]
	if t == nil || !w.talk(m, t) {
		m.after(dialTimeout, func() { done(answer{err: errTimeout}) })
		return
	}
	if t == m {
		m.after(0, func() { done(answer{machine: m, peer: m.node.Self()}) })
		return
	}
	m.after(4*w.delay(m, t), func() { // TCP and TLS
		switch {
		case !w.talk(m, t):
			m.after(dialTimeout, func() { done(answer{err: errTimeout}) })
			return
		case t.node == nil:
			done(answer{err: errRefused})
			return
		}
		a := answer{machine: t, peer: t.node.Self()}
		its := t.shows()
		m.do(func(n *node.Node, now time.Time) {
			a.own, a.believed, a.err = n.Answered(its, w.verify(n, its), at.String(), now)
		})
		mine := m.shows()
		if a.err == nil && a.believed {
			m.proves(a.peer)
		}
		if a.err == nil {
			t.do(func(n *node.Node, now time.Time) {
				a.session, a.err = n.Opened(mine, w.verify(n, mine), m.addr.Addr().String(), now)
			})
			if a.err == nil && a.session.Trusted() {
				t.proves(mine.Peer)
			}
		}
		done(a)
	})
}

// shows is what a daemon proves of itself.
func (m *Machine) shows() node.Peer {
	p := node.Peer{Peer: m.node.Self()}
	if m.net.cfg.Pinned {
		p.Key, p.Statement = m.public, m.node.Statement(m.clock())
	}
	return p
}

// verify verifies what a peer shows. All machines have the same pins, so each statement is verified once.
func (w *Network) verify(n *node.Node, p node.Peer) node.Shown {
	pins, generation := n.Pins()
	id := p.Origin.String() + string(p.Key[:]) + string(p.Statement)
	stated, known := w.verified[id]
	if !known {
		stated = pins.Proves(p.Origin, p.Key, p.Statement) == nil
		w.verified[id] = stated
	}
	return node.Shown{Stated: stated, Generation: generation}
}

// seal identifies what VerifySeal verifies.
type seal struct {
	origin    clustermesh.Origin
	raw, seal uint64
}

// verdict is what VerifySeal returns.
type verdict struct {
	trust.Signed
	error
}

// verifySeal is trust.Config.Verify. All machines have the same pins, so each record is verified once.
func (w *Network) verifySeal(pins authority.Pins, o clustermesh.Origin, raw, proof []byte, known trust.Signed) (trust.Signed, error) {
	id := seal{o, maphash.Bytes(hashed, raw), maphash.Bytes(hashed, proof)}
	v, any := w.seals[id]
	if !any {
		v.Signed, v.error = trust.VerifySeal(pins, o, raw, proof, known)
		w.seals[id] = v
	}
	return v.Signed, v.error
}

// hashed is the seed of the hashes in seal; no result depends on it.
var hashed = maphash.MakeSeed()

// search looks for daemons that are not members, again and again.
func (m *Machine) search() {
	var targets []member.Target
	var reached map[string]bool
	m.do(func(n *node.Node, now time.Time) {
		seeds, found := n.Seeds()
		for _, s := range seeds {
			found = append(found, member.Target{Addr: netip.MustParseAddrPort(s), Seed: s})
		}
		targets, reached = n.Targets(found, now)
	})
	errs, left := make([]error, len(targets)), len(targets)
	end := func() {
		every := rejoin
		m.do(func(n *node.Node, now time.Time) {
			n.EndRound(targets, errs, reached, now)
			if n.Alone() {
				every = firstJoin
			}
		})
		m.after(m.pause(every), m.search)
	}
	if left == 0 {
		end()
		return
	}
	for i, t := range targets {
		m.connect(t.Addr, func(a answer) {
			errs[i] = a.err
			m.do(func(n *node.Node, now time.Time) { n.Tried(t.Addr, a.peer, a.believed, a.err, now) })
			if a.err == nil && a.machine != m {
				m.join(a.machine)
			}
			if left--; left == 0 {
				end()
			}
		})
	}
}

// askUnmet asks the members that have not proven yet that they are there.
func (m *Machine) askUnmet() {
	var all []node.Place
	m.do(func(n *node.Node, now time.Time) { all = n.Unmet(now) })
	slices.SortFunc(all, func(a, b node.Place) int { return a.Node.Compare(b.Node) })
	for _, p := range all {
		m.connect(p.At, func(a answer) {
			proven := a.err == nil && a.peer.Origin == p.Node && a.believed
			m.do(func(n *node.Node, now time.Time) { n.Asked(p, proven, false, now) })
		})
	}
}

// probe probes the machines that are due.
func (m *Machine) probe() {
	var all []node.Probe
	m.do(func(n *node.Node, now time.Time) { all = n.Probes(now) })
	slices.SortFunc(all, func(a, b node.Probe) int { return a.Node.Compare(b.Node) })
	for _, p := range all {
		began, verdict, takes := m.clock(), observe.Silent, probeTimeout
		for _, at := range p.Addrs {
			if t := m.net.at[at]; t != nil && m.net.talk(m, t) {
				verdict, takes = observe.Answered, 2*m.net.delay(m, t)
			}
		}
		if len(p.Addrs) == 0 {
			verdict, takes = observe.Blind, 0
		}
		m.after(takes, func() {
			m.do(func(n *node.Node, now time.Time) { n.Probed(p.Node, verdict, began, now) })
		})
	}
}

// keepStated keeps the statement about the node up to date.
func (m *Machine) keepStated(wait time.Duration) {
	var w node.Wanted
	var asks bool
	m.do(func(n *node.Node, now time.Time) { w, asks = n.Wanted(now) })
	next := func(err error) {
		pause := node.NextRequest(wait, err)
		m.after(m.pause(pause), func() { m.keepStated(pause) })
	}
	if !asks {
		next(nil)
		return
	}
	m.askAny(w, node.ErrNoSigners, next)
}

// askAny asks one signer after the other.
func (m *Machine) askAny(w node.Wanted, failure error, done func(error)) {
	if len(w.Signers) == 0 {
		done(failure)
		return
	}
	at := w.Signers[0]
	w.Signers = w.Signers[1:]
	m.connect(at.At, func(a answer) {
		err := a.err
		if err != nil {
			m.do(func(n *node.Node, now time.Time) { n.Missed(at.Node, at.At, now) })
		} else {
			err = m.adopt(a.machine, w.Statement)
		}
		if err == nil {
			done(nil)
			return
		}
		m.askAny(w, err, done)
	})
}

// adopt has a signer state what is wanted, and puts it in force.
func (m *Machine) adopt(signer *Machine, want authority.Statement) (err error) {
	var signed trust.Signed
	var withheld []clustermesh.Problem
	signer.do(func(n *node.Node, now time.Time) {
		if err = n.MayIssue(want); err == nil {
			signed.Bytes, withheld, err = n.Issue(want, nil, nil, now)
		}
	})
	if err != nil {
		return err
	}
	if signed.Statement, err = authority.OpenStatement(signed.Bytes, m.net.pins); err != nil {
		return err
	}
	m.do(func(n *node.Node, now time.Time) {
		signed.At = now
		err = n.Adopt(signed, want, withheld, now)
	})
	return err
}

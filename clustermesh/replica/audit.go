package replica

import "math/rand/v2"

// auditTicks is how many ticks pass between two audits, on average.
const auditTicks = 10

// audit is when to ask a neighbour to which the stream is whole whether it holds the same. It would
// know: on such a stream nothing is lost unnoticed. So this only finds mistakes, and is not urgent.
type audit struct {
	whole   map[Peer]bool
	in      int    // ticks until the next one
	changes uint64 // as of the last tick
	asked   bool   // since the last tick, because of a Delta of an unknown origin
	// everyone is true if all are to be asked with the next tick, because what is admitted has changed:
	// neighbours that judge alike hold the same, so that one of them would not do.
	everyone bool
}

// Connected is called when a stream to a peer begins. Whole says that both sides write on it, so
// that each notices if something is lost; a stream of which only one end knows is asked about all
// the time. What was in transit on an earlier stream is lost, so both ends look whether they hold
// the same.
func (r *Replica) Connected(p Peer, whole bool) (out Output) {
	if !whole {
		delete(r.audit.whole, p)
		delete(r.hellos, p) // it was set back to an older version
		return r.Dropped(p)
	}
	r.audit.whole[p] = true
	r.sendAgain(p)
	out.send(p, &Hello{Speaks: SpeaksHints, Sum: r.root(), Sender: r.sender()})
	r.meet(&out, p)
	return out
}

// Dropped is called when messages to a peer were not sent, because too many waited.
func (r *Replica) Dropped(p Peer) (out Output) {
	r.sendAgain(p)
	out.send(p, r.open(p))
	return out
}

// Hurry makes an audit due now: something may be wrong that news do not tell.
func (r *Replica) Hurry() { r.audit.in = min(r.audit.in, -2*auditTicks) }

// understands reports whether a neighbour has told that it understands a level. Who is at the other
// end of a stream of one direction does not, whatever another peer claimed in its name.
func (r *Replica) understands(p Peer, level uint8) bool {
	h, said := r.hellos[p]
	return said && r.audit.whole[p] && h.Speaks >= level
}

// toAudit returns which neighbours to ask with this tick whether they hold the same.
func (r *Replica) toAudit(rng *rand.Rand) []Peer {
	all := r.peers.list
	switch {
	case len(all) == 0:
		return nil
	case r.audit.everyone:
		r.audit.everyone = false
		return all
	}
	if p := all[rng.IntN(len(all))]; r.audits(p, rng) {
		return []Peer{p}
	}
	return nil
}

// audits reports whether to ask a neighbour with this tick whether it holds the same.
func (r *Replica) audits(p Peer, rng *rand.Rand) bool {
	moving := r.audit.changes != r.changes
	r.audit.changes = r.changes
	r.audit.in--
	switch {
	case !r.synced || !r.audit.whole[p]:
		return true
	case r.audit.in > 0, moving && r.audit.in > -2*auditTicks: // while news travels, no two daemons hold the same
		return false
	}
	r.audit.in = auditTicks/2 + rng.IntN(auditTicks+1)
	return true
}

package replica

import "slices"

// coldTicks is how long a daemon waits for a peer that is synced, if all that it hears are not.
const coldTicks = 10

// sender says of this replica whether it knows that it has everything.
func (r *Replica) sender() Sender { return Sender{Unsynced: !r.synced && !r.complete && !r.alone()} }

// agreed notes that an exchange with a peer has completed.
func (r *Replica) agreed(with Peer, said Sender) {
	if r.synced {
		return
	}
	r.agree[with] = true
	delete(r.asking.since, with)
	if !said.Unsynced {
		r.asking.sure[with] = true
	}
	r.sure()
}

// ColdStart is called now and then while the replica is not synced: perhaps no peer is, because all daemons
// started at once. Then exchanges with all neighbours count, once everySeed was found, or after a while.
// Otherwise a daemon that met one other empty one first would take what both lack for gone. It reports
// whether the replica is synced now.
func (r *Replica) ColdStart(everySeed bool) bool {
	if r.synced || len(r.agree) == 0 || !everySeed && r.ticks < coldTicks {
		return false
	}
	r.synced = !slices.ContainsFunc(r.peers.list, func(p Peer) bool { return !r.agree[p] })
	return r.synced
}

// Doubted returns a message as one of a peer that may not be who it says: without what it says of its
// sender, that it knows that it has everything; and what it offers is second choice.
func Doubted(m Message) Message {
	switch of := m.(type) {
	case *Digest:
		m = &Digest{Clusters: of.Clusters, Sender: Sender{Unsynced: true}}
	case *Vector:
		m = &Vector{Clusters: of.Clusters, Sender: Sender{Unsynced: true}}
	case *Agree:
		m = &Agree{Sender{Unsynced: true}}
	case *Hello:
		m = &Hello{Speaks: of.Speaks, Sum: of.Sum, Sender: Sender{Unsynced: true}}
	case *Root:
		m = &Root{Sum: of.Sum, Sender: Sender{Unsynced: true}}
	case *Listing:
		m = &Listing{Of: of.Of, Sender: Sender{Unsynced: true}}
	}
	return doubted{m}
}

// doubted is a message of a doubted peer.
type doubted struct{ Message }

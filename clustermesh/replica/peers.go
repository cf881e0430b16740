package replica

import (
	"math/rand/v2"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// drawn is how many neighbours each tick draws: more than are sent news.
const drawn = 64

// neighbours are the peers that this replica exchanges records with. The first of them are a random
// choice.
type neighbours struct {
	list []Peer
	at   map[Peer]int // where they are in list
}

func (n *neighbours) add(p Peer) {
	if n.at == nil {
		n.at = map[Peer]int{}
	}
	n.at[p] = len(n.list)
	n.list = append(n.list, p)
}

func (n *neighbours) remove(p Peer) {
	last := len(n.list) - 1
	n.swap(n.at[p], last)
	n.list = n.list[:last]
	delete(n.at, p)
}

func (n *neighbours) swap(i, j int) {
	n.list[i], n.list[j] = n.list[j], n.list[i]
	n.at[n.list[i]], n.at[n.list[j]] = i, j
}

// draw chooses again who comes first.
func (n *neighbours) draw(rng *rand.Rand) {
	if len(n.list) <= drawn {
		rng.Shuffle(len(n.list), n.swap)
		return
	}
	for i := range drawn {
		n.swap(i, i+rng.IntN(len(n.list)-i))
	}
}

// SetMembers sets which daemons are live, and what else the topology takes into account. The lists
// and maps must not be changed afterwards. Guests are neighbours too.
func (r *Replica) SetMembers(v topology.View) Output {
	live := distinct(v.Members, r.self)
	gone, fresh := difference(r.live, live)
	r.live = live
	for _, o := range gone {
		delete(r.members, o)
	}
	for _, o := range fresh {
		r.members[o] = true
	}
	v.Self, v.Members = r.self, live
	r.ways = r.topology.Ways(v)
	chosen := distinct(r.ways.Neighbours(), r.self)
	if len(v.Guests) > 0 {
		chosen = distinct(slices.Concat(chosen, v.Guests), r.self)
	}
	gone, fresh = difference(r.chosen, chosen)
	r.chosen = chosen
	out := Output{Neighbours: make(map[Peer]bool, len(gone)+len(fresh))}
	for _, p := range gone {
		r.peers.remove(p)
		delete(r.audit.whole, p)
		delete(r.hellos, p)
		r.asking.drop(p)
		out.Neighbours[p] = false
	}
	for _, p := range fresh {
		r.peers.add(p)
		out.Neighbours[p] = true
	}
	return out
}

// distinct returns a list sorted, each origin once and without self: the list itself if it is that
// already.
func distinct(list []clustermesh.Origin, self clustermesh.Origin) []clustermesh.Origin {
	ascends := true
	for i := range list {
		ascends = ascends && list[i] != self && (i == 0 || list[i-1].Compare(list[i]) < 0)
	}
	if ascends {
		return list
	}
	list = slices.DeleteFunc(slices.Clone(list), func(o clustermesh.Origin) bool { return o == self })
	slices.SortFunc(list, clustermesh.Origin.Compare)
	return slices.Compact(list)
}

// difference returns what only the first of two lists has, and what only the second has. Both are
// sorted.
func difference(before, after []clustermesh.Origin) (gone, fresh []clustermesh.Origin) {
	for len(before) > 0 && len(after) > 0 {
		a, b := before[0], after[0]
		switch {
		case a == b:
			before, after = before[1:], after[1:]
		case a.Compare(b) < 0:
			gone, before = append(gone, a), before[1:]
		default:
			fresh, after = append(fresh, b), after[1:]
		}
	}
	return append(gone, before...), append(fresh, after...)
}

// Relays returns the relays of all clusters among what SetMembers was given.
func (r *Replica) Relays(v topology.View) []clustermesh.Origin {
	v.Self = r.self
	return r.topology.Relays(v)
}

// IsNeighbour reports whether there should be a stream to a daemon.
func (r *Replica) IsNeighbour(p Peer) bool {
	_, is := r.peers.at[p]
	return is
}

// Neighbours returns the daemons to keep a stream to.
func (r *Replica) Neighbours() []Peer { return slices.Clone(r.peers.list) }

package clustermesh

import "slices"

// Witnesses returns the origins that claim that the node is silent in its present life: first those
// of its own cluster, then those of others. A claim about an earlier life does not count.
func (s State) Witnesses(node Origin) (home, away []Origin) {
	epoch := s.Records.Get(node).Stamp.Epoch
	for o, r := range s.Records.All() {
		if o == node || !slices.ContainsFunc(r.Content.Silent, func(c Silence) bool {
			return c.Origin == node && c.Epoch >= epoch
		}) {
			continue
		}
		if o.Cluster == node.Cluster {
			home = append(home, o)
		} else {
			away = append(away, o)
		}
	}
	slices.SortFunc(home, Origin.Compare)
	slices.SortFunc(away, Origin.Compare)
	return home, away
}

// Dead decides whether a machine is dead, from the claims in nodes' records, which all nodes
// receive alike, and from what this node's own gossip hears. If one node hears the daemon and
// another does not, they decide differently until their gossip agrees. A claim is trusted as much as
// the record that holds it.
//
// A machine is dead when its own cluster claims so:
//
//   - in a cluster of three nodes or more, when more than half of its other nodes claim that it is
//     silent, so that the smaller side of a split cluster withdraws nothing;
//   - in a cluster of two, when the other node claims it and a node of another cluster agrees;
//   - a node without neighbours is never dead: a cluster that cannot be reached is held.
//
// A node whose daemon this one hears is not dead, whatever others claim. It is not enough that its
// machine answers: a booting machine refuses connections long before its pods serve.
func (s State) Dead(node Origin) bool {
	home, away := s.Witnesses(node)
	return s.deadBy(node, witnesses{len(home), len(away)})
}

// witnesses are how many origins claim that a node is silent, of its own cluster and of others.
type witnesses struct{ home, away int }

func (s State) deadBy(node Origin, w witnesses) bool {
	if s.Contacts.Get(node) == Alive {
		return false
	}
	others := 0
	for o, r := range s.Records.Of(node.Cluster) {
		if o.Node != "" && o != node && r.Content.Node != nil {
			others++
		}
	}
	switch {
	case others >= 2:
		return 2*w.home > others
	case others == 1:
		return w.home == 1 && w.away >= 1
	}
	return false
}

// DeadBy returns the nodes that are Dead, if only the records of these origins have claims. It
// looks at no other records than those of the clusters whose nodes are claimed silent.
func (s State) DeadBy(claimants ByOrigin[bool]) map[Origin]bool {
	all := map[Origin]witnesses{}
	for o := range claimants.All() {
		once := map[Origin]bool{o: true} // no node is its own witness
		for _, c := range s.Records.Get(o).Content.Silent {
			if once[c.Origin] || c.Epoch < s.Records.Get(c.Origin).Stamp.Epoch {
				continue
			}
			once[c.Origin] = true
			w := all[c.Origin]
			if o.Cluster == c.Origin.Cluster {
				w.home++
			} else {
				w.away++
			}
			all[c.Origin] = w
		}
	}
	out := map[Origin]bool{}
	for node, w := range all {
		if node.Node != "" && s.deadBy(node, w) {
			out[node] = true
		}
	}
	return out
}

// Claimed returns the nodes that some witness claims silent. No other node can be Dead, so for others
// the claims need not be counted.
func (s State) Claimed() map[Origin]bool {
	out := map[Origin]bool{}
	for _, r := range s.Records.All() {
		for _, c := range r.Content.Silent {
			out[c.Origin] = c.Origin.Node != ""
		}
	}
	return out
}

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
// A machine is dead when its own cluster says so:
//
//   - in a cluster of three nodes or more, when more than half of its other nodes claim that it is
//     silent, so that the smaller side of a split cluster withdraws nothing;
//   - in a cluster of two, when the other node claims it and a node of another cluster agrees;
//   - a node without neighbours is never dead: a cluster that cannot be reached is held.
//
// A node whose daemon this one hears is not dead, whatever others claim. It is not enough that its
// machine answers: a booting machine refuses connections long before its pods serve.
func (s State) Dead(node Origin) bool {
	if s.Contacts.Get(node) == Alive {
		return false
	}
	others := 0
	for o, r := range s.Records.All() {
		if o.Cluster == node.Cluster && o.Node != "" && o != node && r.Content.Node != nil {
			others++
		}
	}
	home, away := s.Witnesses(node)
	switch {
	case others >= 2:
		return 2*len(home) > others
	case others == 1:
		return len(home) == 1 && len(away) >= 1
	}
	return false
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

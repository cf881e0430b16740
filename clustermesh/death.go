package clustermesh

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

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

const (
	// manyOthers is how many other nodes a cluster has at least for few of them to decide about
	// each.
	manyOthers = 10
	// few is how many decide then.
	few = 9
)

// Deciders returns which nodes of a cluster decide whether one of them is dead: all others, or of
// many the few whose hash with its name is lowest, without those that are dead themselves. So a
// death changes few records, and the loss of a rack is decided in turns, each of which takes the
// next in rank.
func Deciders(nodes []Origin, node Origin, dead map[Origin]bool) []Origin {
	others := make([]Origin, 0, len(nodes))
	for _, o := range nodes {
		if o != node {
			others = append(others, o)
		}
	}
	if !FewDecide(nodes) {
		return others
	}
	rank := ranks(node)
	others = slices.DeleteFunc(others, func(o Origin) bool { return dead[o] })
	of := make(map[Origin]uint64, len(others))
	for _, o := range others {
		of[o] = rank(o)
	}
	slices.SortFunc(others, func(a, b Origin) int { return cmp.Or(cmp.Compare(of[a], of[b]), a.Compare(b)) })
	return others[:min(few, len(others))]
}

// FewDecide reports whether so many nodes are a cluster where few decide about each.
func FewDecide(nodes []Origin) bool { return len(nodes) > manyOthers }

// ranks returns the rank of witnesses of a node, which is the same wherever it is computed. Names
// differ little, so that a hash must mix well: the ranks of two nodes must not depend on each
// other.
func ranks(node Origin) func(Origin) uint64 {
	return func(witness Origin) uint64 {
		hash := sha256.Sum256([]byte(node.String() + "\x00" + witness.String()))
		return binary.BigEndian.Uint64(hash[:])
	}
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
//   - in a cluster of eleven or more, also when five of its nine Deciders do. They claim only while they
//     hear more than half of their cluster, so that the same holds;
//   - in a cluster of two, when the other node claims it and a node of another cluster agrees;
//   - a node without neighbours is never dead: a cluster that cannot be reached is held.
//
// A node whose daemon this one hears is not dead, whatever others claim; nor is one that is Reported,
// until it was asked for a proof that it is there. It is not enough that its machine answers: a booting
// machine refuses connections long before its pods serve.
func (s State) Dead(node Origin) bool {
	c := claims{}
	for o, r := range s.Records.All() {
		c.add(s, o, r)
	}
	return s.deadIn(node.Cluster, c)[node]
}

// DeadOf returns which nodes of a cluster of three or more are dead.
func (s State) DeadOf(cluster ClusterName) map[Origin]bool {
	c := claims{}
	for o, r := range s.Records.Of(cluster) {
		c.add(s, o, r)
	}
	return s.deadIn(cluster, c)
}

// claims are who claims that a node is silent in its present life, of its own cluster and of
// others.
type claims map[Origin]*claimants

type claimants struct {
	home map[Origin]bool
	away int
}

// add adds those of one record.
func (c claims) add(s State, by Origin, r Record) {
	for _, of := range r.Content.Silent {
		if of.Origin == by || of.Epoch < s.Records.Get(of.Origin).Stamp.Epoch { // no node is its own witness
			continue
		}
		all := c[of.Origin]
		if all == nil {
			all = &claimants{home: map[Origin]bool{}}
			c[of.Origin] = all
		}
		if by.Cluster == of.Origin.Cluster {
			all.home[by] = true
		} else {
			all.away++
		}
	}
}

// deadIn returns which nodes of a cluster are dead.
func (s State) deadIn(cluster ClusterName, all claims) map[Origin]bool {
	var nodes, suspects []Origin
	for o, r := range s.Records.Of(cluster) {
		if o.Node != "" && r.Content.Node != nil {
			nodes = append(nodes, o)
		}
	}
	for o := range all {
		if o.Cluster == cluster && o.Node != "" && !s.Contacts.Get(o).Heard() {
			suspects = append(suspects, o)
		}
	}
	dead := map[Origin]bool{}
	for { // until no turn finds another one
		found := map[Origin]bool{}
		for _, o := range suspects {
			if !dead[o] && all[o].decide(nodes, o, dead) {
				found[o] = true
			}
		}
		if len(found) == 0 {
			return dead
		}
		maps.Copy(dead, found)
	}
}

// decide reports whether the claims about a node are enough.
func (c *claimants) decide(nodes []Origin, node Origin, dead map[Origin]bool) bool {
	others := len(nodes)
	if slices.Contains(nodes, node) {
		others--
	}
	switch {
	case others == 0:
		return false
	case others == 1:
		return len(c.home) == 1 && c.away >= 1
	case 2*len(c.home) > others:
		return true
	case !FewDecide(nodes):
		return false
	}
	claim := 0
	for _, o := range Deciders(nodes, node, dead) {
		if c.home[o] {
			claim++
		}
	}
	return 2*claim > few
}

// DeadBy returns the nodes that are Dead, if only the records of these origins have claims. It
// looks at no other records than those of the clusters whose nodes are claimed silent.
func (s State) DeadBy(claimants ByOrigin[bool]) map[Origin]bool {
	all, clusters := claims{}, map[ClusterName]bool{}
	for o := range claimants.All() {
		all.add(s, o, s.Records.Get(o))
	}
	for o := range all {
		clusters[o.Cluster] = true
	}
	out := map[Origin]bool{}
	for c := range clusters {
		maps.Copy(out, s.deadIn(c, all))
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

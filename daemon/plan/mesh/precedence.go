package mesh

import "strait.io/strait/clustermesh"

// standing is a node's claim to something that only one node can have: a WireGuard key, an underlay
// address, a prefix. Names decide nothing: a cluster could choose one that is lower than another's.
type standing struct {
	node clustermesh.Origin
	// proven: the node proved that it has what it claims.
	proven bool
	// own: it is in the cluster of the node that the plan is for, which believes that one before others.
	own bool
	// had: the node had it before; see had.
	had bool
	// first: the node would use it before anything else that it has of the kind.
	first bool
	// dead: the node's machine is.
	dead bool
}

// level orders claims: the lower one wins.
func (s standing) level() (n int) {
	for _, good := range [...]bool{s.proven, s.own, s.had, s.first} {
		n *= 2
		if !good {
			n++
		}
	}
	return n
}

// replaces reports whether a claim is that of a machine that took a dead one's place. A dead node gives way
// to live ones of its own cluster, and to no other cluster's.
func (s standing) replaces(t standing) bool {
	return t.dead && !s.dead && s.node.Cluster == t.node.Cluster && (s.proven || !t.proven)
}

// verdict is what became of a claim.
type verdict struct {
	// to is the claim that it lost to, or that is as good; -1 if it won.
	to int
	// tied: neither of the two has what they claim.
	tied bool
}

func (v verdict) won() bool { return v.to < 0 }

// settle decides which claims win. Excludes reports whether two of them, which have the given numbers,
// cannot both win. If equal claims exclude each other, both lose, and so do weaker ones that they exclude: it is
// not known whose it is, so no node gets it.
func settle(claims []standing, excludes func(i, j int) bool) []verdict {
	out := make([]verdict, len(claims))
	var levels [16][]int
	for i, c := range claims {
		out[i].to = -1
		if c.dead {
			out[i].to = replacement(claims, i, excludes)
		}
		if out[i].won() {
			levels[c.level()] = append(levels[c.level()], i)
		}
	}
	var better []int // claims of better levels that no other excludes
	for _, level := range levels {
		var rest []int
		for _, i := range level {
			if out[i].to = lostTo(better, i, excludes); out[i].won() {
				rest = append(rest, i)
			}
		}
		for _, i := range rest {
			if j := lostTo(rest, i, excludes); j >= 0 {
				out[i] = verdict{j, true}
			}
		}
		better = append(better, rest...)
	}
	return out
}

// replacement returns the claim of a machine that replaced that of claim i; -1 if none did.
func replacement(claims []standing, i int, excludes func(i, j int) bool) int {
	for j := range claims {
		if claims[j].replaces(claims[i]) && excludes(i, j) {
			return j
		}
	}
	return -1
}

// lostTo returns the first of some claims that excludes claim i; -1 if none does.
func lostTo(others []int, i int, excludes func(i, j int) bool) int {
	for _, j := range others {
		if j != i && excludes(i, j) {
			return j
		}
	}
	return -1
}

// contest are claims, by what is claimed. Nearly always there is one.
type contest[T comparable] map[T]claims

type claims struct {
	first  standing
	others []standing
}

func (c contest[T]) claim(what T, s standing) {
	all, any := c[what]
	if !any {
		c[what] = claims{first: s}
		return
	}
	all.others = append(all.others, s)
	c[what] = all
}

// claimedBy is what a node claims.
type claimedBy[T comparable] struct {
	by   clustermesh.Origin
	what T
}

// loss is to which node another lost what it claimed. Tied: neither has it.
type loss struct {
	to   clustermesh.Origin
	tied bool
}

// lost returns the claims that did not win.
func (c contest[T]) lost() map[claimedBy[T]]loss {
	out := map[claimedBy[T]]loss{}
	for what, all := range c {
		if len(all.others) == 0 {
			continue
		}
		list := append([]standing{all.first}, all.others...)
		for i, v := range settle(list, func(i, j int) bool { return true }) {
			if !v.won() {
				out[claimedBy[T]{list[i].node, what}] = loss{list[v.to].node, v.tied}
			}
		}
	}
	return out
}

package gossip

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// learn notes what the cluster's objects say of its nodes. It takes the lock, but asks without it.
func (g *Gossip) learn() {
	if g.cfg.Objects == nil {
		return
	}
	objects, known := g.cfg.Objects()
	if !known {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guard.objects = &objects
}

// certified returns the part of what this node wants to be stated that its cluster's objects, and what was
// stated of others, allow. Known is false while it cannot be told.
func (g *guard) certified(now time.Time) (s authority.Statement, left []clustermesh.Problem, known bool) {
	switch {
	case !g.attests || g.signers == nil: // there is nothing to compare with
		return g.want.Signed(now), nil, true
	case g.objects == nil:
		return authority.Statement{}, nil, false
	}
	k := g.known(g.want, *g.objects, now)
	k.Node.Name = g.want.Node
	if len(k.Node.Addresses) == 0 { // gossip.advertise is the operator's word
		k.Node.Addresses = g.want.Addresses
	}
	s, left = authority.Certify(g.want, k, now)
	return s, left, true
}

// outdated reports whether the statement about this node says something else than its root would state now.
func (g *guard) outdated(now time.Time) bool {
	if g.Root == nil || g.stated.signed == nil {
		return false
	}
	s, _, known := g.certified(now)
	return known && !g.stated.Fulfils(s)
}

// known is what this machine knows when it states something of a node of its cluster.
func (g *guard) known(want authority.Statement, objects authority.Objects, now time.Time) authority.Known {
	k := authority.Known{Pins: g.signers, ClusterSetIPs: g.Ranges, ClusterIPs: objects.ClusterIPs}
	listed := make(map[clustermesh.NodeName]bool, len(objects.Nodes))
	for _, h := range objects.Nodes {
		listed[h.Name] = true
		h.Stated = g.inForce(clustermesh.Origin{Cluster: g.self.Cluster, Node: h.Name}, now)
		if h.Name == want.Node {
			k.Node = h
		} else {
			k.Others = append(k.Others, h)
		}
	}
	if own := (clustermesh.Origin{Cluster: g.self.Cluster, Node: want.Node}); !listed[want.Node] {
		k.Node.Stated = g.inForce(own, now)
	}
	for o, p := range g.proven {
		if _, held := g.held.Record(o); !held || o.Node == "" {
			continue
		}
		switch {
		case o.Cluster != g.self.Cluster:
			k.Foreign = append(k.Foreign, p.Statement)
		case !objects.All && !listed[o.Node] && o.Node != want.Node:
			k.Others = append(k.Others, authority.Holder{Name: o.Node, Stated: g.inForce(o, now)})
		}
	}
	return k
}

// inForce returns the last statement about a node of this cluster that is known; zero if there is none, or it
// was withdrawn. One that this machine signed counts before its node shows it.
func (g *guard) inForce(o clustermesh.Origin, now time.Time) authority.Statement {
	if o == g.self && g.stated.signed != nil {
		return g.stated.Statement
	}
	s := g.proven[o].Statement
	if granted, any := g.granted[o]; any && granted.Serial > s.Serial {
		s = granted
	}
	if g.voids(s, now) {
		return authority.Statement{}
	}
	return s
}

// grant notes what this machine signed for another one.
func (g *guard) grant(s authority.Statement) {
	if len(g.granted) >= maxProven {
		clear(g.granted)
	}
	g.granted[s.Origin()] = s
}

// claim notes which addresses the nodes of this cluster have.
func (g *guard) claim(s authority.Statement) {
	if s.Cluster != g.self.Cluster {
		return
	}
	for _, a := range s.Addresses {
		if !g.machines[a] && g.ours(a) {
			g.machines[a], g.news = true, true
		}
	}
}

// reclaim notes the addresses that nodes of this cluster have no more: they are other clusters' again.
func (g *guard) reclaim() {
	had, news := maps.Clone(g.machines), g.news
	clear(g.machines)
	for o, p := range g.proven {
		if _, held := g.held.Record(o); held || o == g.self {
			g.claim(p.Statement)
		}
	}
	if g.stated.signed != nil {
		g.claim(g.stated.Statement)
	}
	g.news = news || !maps.Equal(had, g.machines)
}

// ours reports whether an address can be that of a machine of this cluster, so that it is none of another
// one's pods. What a node says of itself outside the pinned ranges takes nothing from others.
func (g *guard) ours(a netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	for c, p := range g.Pins {
		if c != g.self.Cluster && slices.ContainsFunc(p.Pods, contains) {
			return false
		}
	}
	return slices.ContainsFunc(g.Pins[g.self.Cluster].Nodes, contains)
}

// maxClaims is how many refused claims of other nodes are shown.
const maxClaims = 32

// refusedClaims reports what this machine did not state of another node, until that asks again.
func (g *Gossip) refusedClaims(about clustermesh.Origin, left []clustermesh.Problem) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := func(i int) string { return fmt.Sprintf("claim of %s %d", about, i) }
	for i, p := range left {
		if g.problems.has(key(i)) || g.problems.count("claim of ") < maxClaims {
			g.problem(key(i), p, lacking+problemLife)
		}
	}
	for i := len(left); g.problems.has(key(i)); i++ {
		g.solved(key(i))
	}
}

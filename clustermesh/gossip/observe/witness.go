package observe

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

// Witness holds the claims "gossip has lost this node and its machine does not answer" that go into
// this node's record.
//
// Only those whose claims count make them: the nodes of the silent node's own cluster, of a large
// one only its clustermesh.Deciders, and, if it has just two nodes, remoteWitnesses of the nodes of
// other clusters. Otherwise one death would change the record of every node of the clusterset.
//
// One claim withdraws nothing: clustermesh.State.Dead needs more than half of the other nodes of
// the node's cluster to agree, or, in a cluster of two, the other node and a node of another
// cluster. Still, a node that hears no other node makes no new claims, because it cannot distinguish the
// death of others from being cut off itself. It keeps an earlier claim until there is a sign of
// life, or the claimed node's record is dropped.
//
// The sign of life that lifts a claim comes from the daemon: it is heard in the life that was
// claimed, or there is a record of a later life. If only the machine answers again, the claim is
// lifted after holdDown: a booting machine refuses connections long before its pods serve.
//
// A node that is cut off and has not noticed yet can make claims for a moment. No other node can
// read such a claim before the cut is healed, and nodes that then hear the claimed node do not
// believe it.
type Witness struct {
	claims map[clustermesh.Origin]uint64 // epoch of the life that went silent, by origin
}

// Restore takes over the claims of the last life.
func (w *Witness) Restore(claims []clustermesh.Silence) {
	w.claims = map[clustermesh.Origin]uint64{}
	for _, s := range claims {
		w.claims[s.Origin] = s.Epoch
	}
}

// Update makes and lifts claims; it reports whether any changed.
func (w *Witness) Update(c *Contacts, known records, now time.Time) (changed bool) {
	c.Know(known)
	alive := c.Alive()
	h := &home{Contacts: c, known: known, now: now}
	counts := c.counting(alive, known, h)
	c.polling = false
	for i := range c.slots {
		s := &c.slots[i]
		if !s.far && s.rounds > 0 && s.is&isAlive != 0 && h.few() && counts(s.origin) {
			c.polling = true // it will have to be claimed soon
		}
		if s.is&isSilent == 0 || alive.Len() == 0 {
			continue
		}
		if _, isClaimed := w.claims[s.origin]; !isClaimed && counts(s.origin) {
			if !h.hearsEnough(s.origin) {
				c.polling = true
				continue
			}
			if w.claims == nil {
				w.claims = map[clustermesh.Origin]uint64{}
			}
			w.claims[s.origin] = s.written.epoch
			changed = true
		}
	}
	for o, claimed := range w.claims {
		n := c.look(o)
		switch {
		case !n.written.known || !counts(o) || n.of() == clustermesh.Alive || n.back(now):
			delete(w.claims, o)
			changed = true
		case n.written.epoch > claimed:
			// There is a record of a later life; what we observed is about the earlier one.
			delete(w.claims, o)
			c.renew(n, now)
			changed = true
		}
	}
	return changed
}

// remoteWitnesses is how many nodes of other clusters claim a node of a cluster of two. One of them
// must agree with the other node of the cluster.
const remoteWitnesses = 3

// counting returns a function that reports whether a claim of this node about another one counts.
// All nodes that hear the same others choose the same witnesses: those whose hash with the node's
// name is lowest.
func (c *Contacts) counting(alive clustermesh.ByOrigin[bool], known records, h *home) func(clustermesh.Origin) bool {
	return func(silent clustermesh.Origin) bool {
		switch {
		case silent.Cluster == c.self.Cluster:
			return h.counts(silent)
		case !isPair(known, silent.Cluster):
			return false
		}
		own, lower := rank(silent, c.self), 0
		for o := range alive.All() {
			if o != c.self && o.Cluster != silent.Cluster && rank(silent, o) < own {
				if lower++; lower == remoteWitnesses {
					return false
				}
			}
		}
		return true
	}
}

// home is this node's own cluster, as far as it matters for claims. What it costs to look at is
// only paid if there is a question.
type home struct {
	*Contacts
	known records
	now   time.Time
	nodes []clustermesh.Origin
	dead  map[clustermesh.Origin]bool
}

// few reports whether few of the nodes decide about each: there are many, and all daemons know
// that.
func (h *home) few() bool {
	if h.nodes == nil {
		for o, r := range h.known.Of(h.self.Cluster) {
			if o.Node != "" && r.Content.Node != nil {
				h.nodes = append(h.nodes, o)
			}
		}
	}
	return h.older == 0 && clustermesh.FewDecide(h.nodes)
}

// counts reports whether a claim of this node about another one of its cluster counts.
func (h *home) counts(silent clustermesh.Origin) bool {
	if !h.few() {
		return true
	}
	if h.dead == nil {
		h.dead = clustermesh.State{Records: h.known, Contacts: h.All(h.known)}.DeadOf(h.self.Cluster)
	}
	return slices.Contains(clustermesh.Deciders(h.nodes, silent, h.dead), h.self)
}

// hearsEnough reports whether this node hears enough others to claim that one is silent: where few
// decide, more than half of its cluster with itself, so that the smaller side of a split claims
// nothing. Who is alive until it is found silent does not count: of a split, all are not found at
// once.
func (h *home) hearsEnough(silent clustermesh.Origin) bool {
	if silent.Cluster != h.self.Cluster || !h.few() {
		return true
	}
	heard := 0
	for _, o := range h.nodes {
		if o == h.self || h.look(o).isFresh(h.now) {
			heard++
		}
	}
	return 2*heard > len(h.nodes)
}

// isPair reports whether a cluster has two nodes.
func isPair(known records, cluster clustermesh.ClusterName) bool {
	nodes := 0
	for o := range known.Of(cluster) {
		if o.Node != "" {
			nodes++
		}
		if nodes > 2 {
			return false
		}
	}
	return nodes == 2
}

func rank(silent, witness clustermesh.Origin) uint64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s\x00%s", silent, witness)
	return hash.Sum64()
}

// Silences returns the claims, sorted by origin.
func (w *Witness) Silences() []clustermesh.Silence {
	var out []clustermesh.Silence
	for o, epoch := range w.claims {
		out = append(out, clustermesh.Silence{Origin: o, Epoch: epoch})
	}
	slices.SortFunc(out, func(a, b clustermesh.Silence) int { return a.Origin.Compare(b.Origin) })
	return out
}

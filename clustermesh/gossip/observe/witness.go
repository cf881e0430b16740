package observe

import (
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

// Witness holds the claims "gossip has lost this node and its machine does not answer" that go into
// this node's record.
//
// One claim withdraws nothing: clustermesh.State.Dead needs more than half of the other nodes of
// the node's cluster to agree, or, in a cluster of two, the other node and a node of another
// cluster. Still, a node that hears no other node makes no new claims, because it cannot tell the
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
	hears := c.hears()
	for o := range w.claims {
		if _, held := known[o]; !held {
			delete(w.claims, o)
			changed = true
		}
	}
	for o, n := range c.nodes {
		rec, held := known[o]
		claimed, isClaimed := w.claims[o]
		epoch := rec.Stamp.Epoch
		switch state := n.of(epoch); {
		case !held || o == c.self:
		case isClaimed && (state == clustermesh.Alive || n.back(now)):
			delete(w.claims, o)
			changed = true
		case isClaimed && epoch > claimed:
			// There is a record of a later life; what we observed is about the earlier one.
			delete(w.claims, o)
			c.renew(o, now)
			changed = true
		case !isClaimed && state == clustermesh.Silent && hears:
			if w.claims == nil {
				w.claims = map[clustermesh.Origin]uint64{}
			}
			w.claims[o] = epoch
			changed = true
		}
	}
	return changed
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

package observe

import (
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

// Witness holds the claims "gossip has lost this node and its machine does not answer" that go into
// this node's record.
//
// A claim alone withdraws nothing (clustermesh.State.Dead wants most of the node's own cluster to agree,
// or a survivor and a remote). Still, a node that hears no other makes no new claims: it cannot tell the
// deaths of others from its own cut. What it claimed before, it keeps, until there is a sign of life.
// The sign of life that lifts a claim is the daemon's: its record of a later life, or its voice in the life
// that was claimed. That the machine answers again is not enough at once: one that boots refuses
// connections long before its pods serve.
//
// A node that is cut off and has not noticed yet may claim for a moment. No other node can read that claim before
// the cut is healed, and those that then hear the claimed node do not believe it.
type Witness struct {
	claims map[clustermesh.Origin]uint64 // the epochs of the lives that went silent
}

// Restore takes up the claims of the last life.
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
			// Another node has heard a later life of it: what we know is of the earlier one.
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

// Silences are the claims, in the order of origins.
func (w *Witness) Silences() []clustermesh.Silence {
	var out []clustermesh.Silence
	for o, epoch := range w.claims {
		out = append(out, clustermesh.Silence{Origin: o, Epoch: epoch})
	}
	slices.SortFunc(out, func(a, b clustermesh.Silence) int { return a.Origin.Compare(b.Origin) })
	return out
}

package gossip

import (
	"context"
	"math/rand/v2"
	"time"

	"strait.io/strait/clustermesh"
)

// maxProbing bounds the machines probed at once.
const maxProbing = 64

// witness holds the claims "gossip has lost this node and its machine does not answer" that go into
// this node's record. Pure.
//
// A claim alone withdraws nothing (clustermesh.State.Dead wants most of the node's own cluster to agree,
// or a survivor and a remote). Still a node that hears nobody makes no new claims: it cannot tell the
// deaths of others from its own cut. What it claimed before, it keeps, until there is a sign of life.
// The sign of life that lifts a claim is the daemon's: its record of a later life, or its voice in the life
// that was claimed. That the machine answers again is not enough at once: one that boots refuses
// connections long before its pods serve.
//
// A cut node that has not noticed yet may claim for a moment; nobody can read that claim before the cut
// is healed, and whoever then hears the node does not believe it.
type witness struct {
	claims map[clustermesh.Origin]uint64 // the epochs of the lives that went silent
}

func (w *witness) restore(claims []clustermesh.Silence) {
	w.claims = map[clustermesh.Origin]uint64{}
	for _, s := range claims {
		w.claims[s.Origin] = s.Epoch
	}
}

// update makes and lifts claims; it reports whether any changed.
func (w *witness) update(c *contacts, records map[clustermesh.Origin]clustermesh.Record, now time.Time) (changed bool) {
	hears := len(c.alive()) > 0
	for o := range w.claims {
		if _, known := records[o]; !known {
			delete(w.claims, o)
			changed = true
		}
	}
	for o, n := range c.nodes {
		rec, known := records[o]
		claimed, isClaimed := w.claims[o]
		epoch := rec.Stamp.Epoch
		switch state := n.of(epoch); {
		case !known || o == c.self:
		case isClaimed && (state == clustermesh.Alive || n.back(now)):
			delete(w.claims, o)
			changed = true
		case isClaimed && epoch > claimed:
			// Somebody has heard a later life of it: what we know is of the earlier one.
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

func (w *witness) silences() []clustermesh.Silence {
	var out []clustermesh.Silence
	for _, o := range sortedOrigins(w.claims) {
		out = append(out, clustermesh.Silence{Origin: o, Epoch: w.claims[o]})
	}
	return out
}

// probeDue starts the probes that are due. It waits for none of them.
func (g *Gossip) probeDue(ctx context.Context, slots chan struct{}, start func(func())) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	records := g.replica.Records()
	for _, o := range g.contacts.due(records, now) {
		select {
		case slots <- struct{}{}:
		default:
			g.contacts.node(o).probing = false // its turn comes
			continue
		}
		addrs := probeAddrs(records[o], g.contacts.memberAddr(o))
		start(func() {
			began := time.Now()
			v := g.probe(ctx, addrs)
			<-slots
			if ctx.Err() == nil {
				g.probed(o, v, began)
			}
		})
	}
}

func (g *Gossip) probed(o clustermesh.Origin, v verdict, began time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.contacts.node(o).state()
	g.contacts.probed(o, v, began, time.Now(), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if after := g.contacts.node(o).state(); after != before {
		g.log.Info("contact", "node", o, "from", before, "to", after)
		g.touch()
	}
	g.testify()
}

// testify brings the claims in line with what is observed. The lock is held.
func (g *Gossip) testify() {
	if g.witness.update(g.contacts, g.replica.Records(), time.Now()) {
		g.log.Info("claims", "silent", g.witness.silences())
		if g.publish() {
			poke(g.changed)
		}
	}
}

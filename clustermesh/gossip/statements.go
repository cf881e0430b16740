package gossip

import (
	"fmt"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/trust"
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
	g.trust.SetObjects(objects)
}

// seal is replica.Config.Seal. The lock is held, or nothing runs yet.
func (g *Gossip) seal(e replica.Entry) []byte {
	seal, err := g.trust.Seal(e, time.Now())
	if err != nil {
		g.log.Error("cannot sign a record", "record", e.Record.Origin, "error", err)
	}
	return seal
}

// renewStatement renews the statement about this node when that is due or it says too much. The lock is
// held.
func (g *Gossip) renewStatement(now time.Time) {
	if g.trust.NeedsRenewal(now) {
		g.apply(g.replica.Renew())
	}
	g.trust.UpdateMachines()
	if p, revoked := g.trust.KeyRevoked(); revoked {
		g.problem("revoked", p, 0)
	} else {
		g.solved("revoked")
	}
}

// reviewStatements updates what this leader withdraws, and reports what is wrong with nodes and clusters
// that are believed. The lock is held.
func (g *Gossip) reviewStatements(now time.Time) {
	if g.leader.is {
		r, _ := g.replica.Record(clustermesh.Origin{Cluster: g.cfg.Self.Cluster})
		g.trust.Review(r.Stamp.Epoch == g.leader.epoch(), now)
	} else {
		g.trust.Resign()
	}
	for _, p := range g.trust.Problems(g.contacts.Alive(), g.replica.Records(), now) {
		g.problem("trust "+string(p.Code)+" "+p.Object, p, problemLife)
	}
}

// maxWithheld bounds the parts of other nodes' statements that were not stated and are shown.
const maxWithheld = 32

// reportWithheld reports what this machine did not state of another node, until that asks again.
func (g *Gossip) reportWithheld(about clustermesh.Origin, withheld []clustermesh.Problem) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := func(i int) string { return fmt.Sprintf("claim of %s %d", about, i) }
	for i, p := range withheld {
		if g.problems.has(key(i)) || g.problems.count("claim of ") < maxWithheld {
			g.problem(key(i), p, trust.Lacking+problemLife)
		}
	}
	for i := len(withheld); g.problems.has(key(i)); i++ {
		g.solved(key(i))
	}
}

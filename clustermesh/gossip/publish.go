package gossip

import (
	"time"

	"strait.io/strait/clustermesh"
)

// Publish sets what this node says about itself: Node and Endpoints. Claims about silent nodes are
// added here. It reports whether State changed. State includes the content at once, and Changed
// does not report it, because the caller knows already. The content must not be changed afterwards.
func (g *Gossip) Publish(c clustermesh.Content) (changed bool) {
	g.learn()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = &c
	return g.publish()
}

// publish writes this node's record from what was published and what is claimed. The lock is held.
func (g *Gossip) publish() (changed bool) {
	if g.own == nil {
		return false // the record of the last life, with its claims, stays in force until Publish
	}
	c := *g.own
	if g.trust.Pins() != nil && g.trust.Follower() {
		if stated, _ := g.trust.UpdateStatement(c.Node, time.Now()); !stated {
			return false // others would not believe it
		}
	}
	c.Silent = g.witness.Silences()
	if c.Node != nil && g.proves() {
		n := *c.Node
		n.Proves = true
		c.Node = &n
	}
	if c.Node != nil && g.replica.Epoch() < g.self.Boot {
		n := *c.Node
		n.Life = g.self.Boot
		c.Node = &n
	}
	return g.carryOut(g.replica.Publish(c))
}

// PublishCluster sets what the cluster says: Exports, Allocations, and Endpoints that name no node.
// It does nothing unless this node is the leader; a new leader must publish again. Like Publish, it
// reports whether State changed. If the write is delayed because the record is large, Changed
// reports it later. The content must not be changed afterwards.
func (g *Gossip) PublishCluster(c clustermesh.Content) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cfg.Lead != nil {
		g.follow() // the term may have ended since the last check
	}
	if !g.leader.is {
		return false
	}
	g.cluster = &c
	return g.publishCluster()
}

// A leader spends at most a thirtieth (1/clusterShare) of its time on writing its cluster's record,
// if that has more than clusterSmall bytes. The record of a large cluster takes megabytes. Every
// node reads it, plans with it and saves it, which takes each of them several times as long as
// writing it. So frequent changes are batched; a single change is not delayed.
const (
	clusterShare = 30
	clusterSmall = 128 << 10
)

// publishCluster writes the cluster's record if its content changed. If it is too early for that, a
// later tick writes it. It reports whether State changed. The lock is held.
func (g *Gossip) publishCluster() (changed bool) {
	start := time.Now()
	if !g.leader.is || g.cluster == nil || start.Before(g.clusterAt) {
		return false
	}
	content := *g.cluster
	content.AsOf, content.Revoked = g.asOf(start), g.trust.Pins()[g.cfg.Self.Cluster].Revoked
	content.Withdrawn = g.trust.Withdrawals()
	out := g.replica.PublishCluster(content, g.leader.epoch())
	changed = g.carryOut(out)
	size := g.replica.Size(clustermesh.Origin{Cluster: g.cfg.Self.Cluster})
	if changed && size > clusterSmall {
		g.clusterAt = start.Add(clusterShare * time.Since(start))
	}
	return changed
}

// asOf returns the AsOf of what the leader writes: that of the record in force, until it is an
// AsOfPeriod old. The lock is held.
func (g *Gossip) asOf(now time.Time) int64 {
	held, _ := g.replica.Record(clustermesh.Origin{Cluster: g.cfg.Self.Cluster})
	if age := now.Sub(time.Unix(held.Content.AsOf, 0)); age >= 0 && age < clustermesh.AsOfPeriod {
		return held.Content.AsOf
	}
	return now.Unix()
}

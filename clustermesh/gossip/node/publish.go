package node

import (
	"time"

	"strait.io/strait/clustermesh"
)

// Publish sets the content of this node's record: Node and Endpoints. Claims about silent nodes are
// added here. It reports whether State changed. State includes the content at once, and Changed
// does not report it, because the caller knows already. The content must not be changed afterwards.
func (n *Node) Publish(c clustermesh.Content, now time.Time) (changed bool) {
	n.now = now
	n.own = &c
	return n.publish()
}

// publish writes this node's record from what was published and what is claimed.
func (n *Node) publish() (changed bool) {
	if n.own == nil {
		return false // the record of the last life, with its claims, stays in force until Publish
	}
	c := *n.own
	if n.trust.Pins() != nil && n.trust.Follower() {
		if stated, _ := n.trust.UpdateStatement(c.Node, n.now); !stated {
			return false // others would not believe it
		}
	}
	c.Silent = n.witness.Silences()
	if c.Node != nil {
		own := *c.Node
		own.Speaks, own.Proves = clustermesh.SpeaksRelays, n.cfg.Proves
		if n.replica.Epoch() < n.self.Boot {
			own.Life = n.self.Boot
		}
		c.Node = &own
	}
	return n.carryOut(n.replica.Publish(c))
}

// PublishCluster sets the content of the cluster's record: Exports, Allocations, and Endpoints that
// name no node. It does nothing unless this node is the leader; a new leader must publish again.
// Like Publish, it reports whether State changed. If the write is delayed because the record is
// large, Changed reports it later. The content must not be changed afterwards.
func (n *Node) PublishCluster(c clustermesh.Content, now time.Time) (changed bool) {
	n.now = now
	if n.cfg.Lead != nil {
		n.follow() // the term may have ended since the last check
	}
	if !n.election.is {
		return false
	}
	n.cluster = &c
	return n.publishCluster()
}

// A leader spends at most a thirtieth (1/clusterShare) of its time on writing its cluster's record,
// if that has more than clusterSmall bytes. The record of a large cluster takes megabytes. Every
// node reads it, plans with it and saves it, which takes each of them several times as long as
// writing it. So frequent changes are batched; a single change is not delayed. A write also takes
// long because the machine is busy or was suspended, so no change waits longer than clusterWait.
const (
	clusterShare = 30
	clusterSmall = 128 << 10
	clusterWait  = 15 * time.Second
)

// publishCluster writes the cluster's record if its content changed. If it is too early for that, a
// later tick writes it. It reports whether State changed.
func (n *Node) publishCluster() (changed bool) {
	if !n.election.is || n.cluster == nil || n.now.Before(n.clusterAt) {
		return false
	}
	content := *n.cluster
	content.AsOf, content.Revoked = n.asOf(), n.trust.Pins()[n.cfg.Self.Cluster].Revoked
	content.Withdrawn = n.trust.Withdrawals()
	took := n.cfg.Measure(func() {
		out := n.replica.PublishCluster(content, n.election.epoch())
		n.arrived(out.Changed, n.cfg.Self)
		changed = n.carryOut(out)
	})
	size := n.replica.Size(clustermesh.Origin{Cluster: n.cfg.Self.Cluster})
	if changed && size > clusterSmall {
		n.clusterAt = n.now.Add(min(clusterShare*took, clusterWait))
	}
	return changed
}

// asOf returns the AsOf of what the leader writes: that of the record in force, until it is an
// AsOfPeriod old.
func (l *leadership) asOf() int64 {
	held, _ := l.records.Record(clustermesh.Origin{Cluster: l.cfg.Self.Cluster})
	if age := l.now.Sub(time.Unix(held.Content.AsOf, 0)); age >= 0 && age < clustermesh.AsOfPeriod {
		return held.Content.AsOf
	}
	return l.now.Unix()
}

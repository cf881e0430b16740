package gossip

import (
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// clusters is member.Clusters with a lock of its own. No other lock is taken under it, because
// memberlist calls admit with its own lock held.
//
// Where there are pins, it knows nothing and admits all: whose a cluster's name is, the pinned roots say,
// by the seals of records and the proofs of daemons. What anybody says who has proven nothing must neither
// give a name away nor keep its owner out.
type clusters struct {
	mu       sync.Mutex
	clusters *member.Clusters
	pinned   bool
}

// loadClusters starts with what the last life saved. Where there are pins, that does not matter; it is
// replaced at the next save, so that nothing of it is left that was made up.
func (g *Gossip) loadClusters() {
	pinned := g.trust.Pins() != nil
	var last map[clustermesh.ClusterName]string
	var err error
	if !pinned {
		last, err = loadUIDs(g.cfg.StateDir)
	}
	g.clusters = &clusters{clusters: member.NewClusters(g.cfg.Self.Cluster, g.cfg.UID, last, time.Now()), pinned: pinned}
	if err != nil {
		g.problem("uids", stateProblem(err), 0)
	}
	if err != nil || pinned {
		g.clusters.unsave()
	}
}

// repin says whether there are pins.
func (c *clusters) repin(pinned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned = pinned
}

func (c *clusters) admit(p member.Peer) (owner string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned {
		return "", true
	}
	return c.clusters.Admit(p.Origin.Cluster, p.UID, time.Now())
}

func (c *clusters) belongs(name clustermesh.ClusterName, uid string) (owner string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned {
		return "", true
	}
	return c.clusters.Belongs(name, uid)
}

// look notes which clusters are heard, and reports whether any cluster name got a new owner since
// the last look.
func (c *clusters) look(alive []clustermesh.Origin, now time.Time) (moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned {
		return false
	}
	for _, o := range alive {
		c.clusters.Heard(o.Cluster, now)
	}
	return c.clusters.Moved()
}

func (c *clusters) unsaved() (map[clustermesh.ClusterName]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusters.Unsaved()
}

func (c *clusters) unsave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters.Unsave()
}

package gossip

import (
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// clusters is member.Clusters with a lock of its own. No other lock is taken under it, because
// memberlist calls admit with its own lock held.
type clusters struct {
	mu       sync.Mutex
	clusters *member.Clusters
}

// loadClusters starts with what the last life saved.
func (g *Gossip) loadClusters() {
	last, err := loadUIDs(g.cfg.StateDir)
	g.clusters = &clusters{clusters: member.NewClusters(g.cfg.Self.Cluster, g.cfg.UID, last, time.Now())}
	if err != nil {
		g.problem("uids", stateProblem(err), 0)
		g.clusters.unsave()
	}
}

func (c *clusters) admit(p member.Peer) (owner string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusters.Admit(p.Origin.Cluster, p.UID, time.Now())
}

func (c *clusters) belongs(name clustermesh.ClusterName, uid string) (owner string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusters.Belongs(name, uid)
}

// look notes which clusters are heard, and reports whether any cluster name got a new owner since
// the last look.
func (c *clusters) look(alive []clustermesh.Origin, now time.Time) (moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

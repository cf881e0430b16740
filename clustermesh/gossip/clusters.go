package gossip

import (
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/statedir"
)

// clusters implements node.Owners: it is member.Clusters with a lock of its own. No other lock is taken
// under it, because memberlist calls Admit with its own lock held.
type clusters struct {
	mu       sync.Mutex
	clusters *member.Clusters
}

var _ node.Owners = (*clusters)(nil)

// loadClusters starts with what the last life saved. Where there are pins, that does not matter; it is
// replaced at the next save, so that nothing of it is left that was made up.
func (g *Gossip) loadClusters() (err error) {
	pinned := g.cfg.Authority.Checks()
	var last map[clustermesh.ClusterName]string
	if !pinned {
		last, err = statedir.LoadUIDs(g.cfg.StateDir)
	}
	g.clusters = &clusters{clusters: member.NewClusters(g.cfg.Self.Cluster, g.cfg.UID, last, time.Now())}
	g.clusters.SetPinned(pinned)
	if err != nil || pinned {
		g.clusters.unsave()
	}
	return err
}

// SetPinned implements node.Owners.
func (c *clusters) SetPinned(pinned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters.SetPinned(pinned)
}

// Admit implements node.Owners.
func (c *clusters) Admit(name clustermesh.ClusterName, uid string, now time.Time) (owner string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusters.Admit(name, uid, now)
}

// Belongs implements node.Owners.
func (c *clusters) Belongs(name clustermesh.ClusterName, uid string) (owner string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusters.Belongs(name, uid)
}

// Look implements node.Owners.
func (c *clusters) Look(alive []clustermesh.ClusterName, now time.Time) (moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusters.Look(alive, now)
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

package member

import (
	"errors"
	"time"

	"strait.io/strait/clustermesh"
)

// uidLife is how long a cluster must be silent before another cluster can take its name: by then it
// has been rebuilt, or is no longer needed.
const uidLife = time.Minute

// ErrOtherCluster means that the name of a peer's cluster belongs to another cluster.
var ErrOtherCluster = errors.New("its cluster's name belongs to another cluster")

// Clusters remembers which cluster each name belongs to: the first one heard with that name, for as
// long as it is heard.
type Clusters struct {
	self   clustermesh.ClusterName
	owners map[clustermesh.ClusterName]owner
	news   bool // something changed since the last save
	moved  bool // a name got an owner since the last call of Moved
}

type owner struct {
	uid   string
	heard time.Time
}

// NewClusters starts with the UIDs, by name, that the last life saved. Those clusters count as
// heard now. uid is this cluster's own UID; empty if it has none.
func NewClusters(self clustermesh.ClusterName, uid string, last map[clustermesh.ClusterName]string, now time.Time) *Clusters {
	// Names may have got other owners since the records were saved, so moved is true.
	c := &Clusters{self: self, owners: map[clustermesh.ClusterName]owner{}, moved: true}
	for name, id := range last {
		c.owners[name] = owner{id, now}
	}
	delete(c.owners, self)
	if uid != "" {
		c.owners[self] = owner{uid, now}
	}
	return c
}

// Admit reports whether a cluster's name belongs to the cluster with that UID; if not, it returns
// the owner's UID. A name without an owner, or whose owner has not been heard for uidLife, is given
// to the cluster with that UID; our own cluster's name never is. An empty UID matches any other.
func (c *Clusters) Admit(name clustermesh.ClusterName, uid string, now time.Time) (other string, ok bool) {
	o, owned := c.owners[name]
	switch {
	case uid == "":
		return "", true
	case owned && o.uid == uid:
		c.owners[name] = owner{uid, now}
		return "", true
	case owned && (name == c.self || now.Sub(o.heard) < uidLife):
		return o.uid, false
	case !owned && name == c.self:
		return "", true // we do not know our own UID: standalone
	}
	c.owners[name] = owner{uid, now}
	c.news, c.moved = true, true
	return "", true
}

// Belongs reports whether a record that names a cluster and its UID agrees with the owner of the
// name; if not, it returns the owner's UID. It does not count as hearing the cluster, because a
// third daemon may have forwarded the record.
func (c *Clusters) Belongs(name clustermesh.ClusterName, uid string) (other string, ok bool) {
	o, owned := c.owners[name]
	return o.uid, uid == "" || !owned || o.uid == uid
}

// Moved reports whether any name got an owner since the last call.
func (c *Clusters) Moved() bool {
	moved := c.moved
	c.moved = false
	return moved
}

// Heard notes that members of a cluster are alive.
func (c *Clusters) Heard(name clustermesh.ClusterName, now time.Time) {
	if o, ok := c.owners[name]; ok {
		c.owners[name] = owner{o.uid, now}
	}
}

// Unsaved returns the UIDs by cluster name, if any changed since the last call.
func (c *Clusters) Unsaved() (map[clustermesh.ClusterName]string, bool) {
	if !c.news {
		return nil, false
	}
	c.news = false
	out := map[clustermesh.ClusterName]string{}
	for name, o := range c.owners {
		out[name] = o.uid
	}
	return out, true
}

// Unsave makes the next Unsaved return the UIDs again: they could not be saved, or the file on disk
// cannot be read.
func (c *Clusters) Unsave() { c.news = true }

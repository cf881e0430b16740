package member

import (
	"errors"
	"time"

	"strait.io/strait/clustermesh"
)

// uidLife is how long a cluster must not have been heard before another may have its name: it was rebuilt,
// or it is not missed.
const uidLife = time.Minute

// ErrOtherCluster means that a peer's cluster has the name of another.
var ErrOtherCluster = errors.New("another cluster has its name")

// Clusters remembers which cluster each name belongs to: the first that was heard with it, for as long as
// that is heard.
type Clusters struct {
	self   clustermesh.ClusterName
	owners map[clustermesh.ClusterName]owner
	news   bool // since the last save
	moved  bool // a name has come to belong to a cluster, since Moved was last asked
}

type owner struct {
	uid   string
	heard time.Time
}

// NewClusters starts with what the last life knew; those clusters count as heard now. The own UID is empty
// where nothing tells clusters of one name apart.
func NewClusters(self clustermesh.ClusterName, uid string, last map[clustermesh.ClusterName]string, now time.Time) *Clusters {
	c := &Clusters{self: self, owners: map[clustermesh.ClusterName]owner{}, moved: true} // since the records were saved
	for name, id := range last {
		c.owners[name] = owner{id, now}
	}
	delete(c.owners, self)
	if uid != "" {
		c.owners[self] = owner{uid, now}
	}
	return c
}

// Admit reports whether the name of a cluster belongs to the one with that UID; otherwise it returns the UID
// of the one that it belongs to. A name without an owner is taken. An empty UID matches every other.
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
		return "", true // we do not know our own: standalone
	}
	c.owners[name] = owner{uid, now}
	c.news, c.moved = true, true
	return "", true
}

// Belongs reports whether a record that says to be of a cluster with that UID may be; otherwise it returns
// the UID of the one that has the name. That a third daemon passes it on says nothing of who is heard.
func (c *Clusters) Belongs(name clustermesh.ClusterName, uid string) (other string, ok bool) {
	o, owned := c.owners[name]
	return o.uid, uid == "" || !owned || o.uid == uid
}

// Moved reports whether a name has come to belong to a cluster since it was last asked.
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

// Unsaved returns what is known if that is news since it was last asked for.
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

// Unsave makes what is known news again: it could not be saved, or what is on disk cannot be read.
func (c *Clusters) Unsave() { c.news = true }

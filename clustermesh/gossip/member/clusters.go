package member

import (
	"errors"
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

// uidLife is how long a cluster must be silent before another cluster can take its name: by then it
// has been rebuilt, or is no longer needed.
const uidLife = time.Minute

// maxNames bounds the names that are remembered: a holder of the gossip key can invent some. It is as many
// as there can be clusters without pins.
const maxNames = 500

// ErrWrongKey means that a peer's certificate was made from another gossip key, or that the peer
// refused ours for that reason.
var ErrWrongKey = errors.New("the gossip key differs")

// ErrOtherCluster means that the name of a peer's cluster belongs to another cluster.
var ErrOtherCluster = errors.New("its cluster's name belongs to another cluster")

// Clusters remembers which cluster each name belongs to: the first one heard with that name, for as
// long as it is heard.
//
// Where there are pins, it knows nothing and admits all: whose a cluster's name is, the pinned roots decide,
// by the seals of records and the proofs of daemons. A peer that has proven nothing must neither give a
// name away nor keep its owner out.
type Clusters struct {
	pinned bool
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
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if id := last[name]; CheckUID(id) == nil && len(c.owners) < maxNames && name != self {
			c.owners[name] = owner{id, now}
		}
	}
	if uid != "" {
		c.owners[self] = owner{uid, now}
	}
	return c
}

// Admit reports whether a cluster's name belongs to the cluster with that UID; if not, it returns
// the owner's UID. A name without an owner, or whose owner has not been heard for uidLife, is given
// to the cluster with that UID; our own cluster's name never is. An empty UID matches any other. If there
// are maxNames already, all heard within uidLife, another name stays without an owner.
func (c *Clusters) Admit(name clustermesh.ClusterName, uid string, now time.Time) (other string, ok bool) {
	if c.pinned {
		return "", true
	}
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
	if !owned && !c.room(now) {
		return "", true
	}
	c.owners[name] = owner{uid, now}
	c.news, c.moved = true, true
	return "", true
}

// room makes room for another name if it must, and reports whether there is any.
func (c *Clusters) room(now time.Time) bool {
	if len(c.owners) >= maxNames {
		maps.DeleteFunc(c.owners, func(name clustermesh.ClusterName, o owner) bool {
			return name != c.self && now.Sub(o.heard) >= uidLife
		})
	}
	return len(c.owners) < maxNames
}

// Belongs reports whether a record that names a cluster and its UID agrees with the owner of the
// name; if not, it returns the owner's UID. It does not count as hearing the cluster, because a
// third daemon may have forwarded the record.
func (c *Clusters) Belongs(name clustermesh.ClusterName, uid string) (other string, ok bool) {
	if c.pinned {
		return "", true
	}
	o, owned := c.owners[name]
	return o.uid, uid == "" || !owned || o.uid == uid
}

// SetPinned sets whether there are pins.
func (c *Clusters) SetPinned(pinned bool) { c.pinned = pinned }

// Look notes of which clusters nodes are alive, and reports whether any name got an owner since the
// last call.
func (c *Clusters) Look(alive []clustermesh.ClusterName, now time.Time) (moved bool) {
	if c.pinned {
		return false
	}
	for _, name := range alive {
		c.Heard(name, now)
	}
	return c.Moved()
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

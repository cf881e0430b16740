package clustermesh

import (
	"iter"
	"maps"
	"slices"
)

// ByOrigin has a value for each of some origins. It is immutable: a copy is cheap, and what is made from it
// shares what did not change. A change copies the list of clusters, and pointers to the values of one
// cluster, not those of all nodes. The zero ByOrigin is empty.
type ByOrigin[V any] struct {
	clusters map[ClusterName]*ofCluster[V] // none is empty
	size     int
}

// ofCluster are the values of one cluster's origins; that of the cluster itself has no node's name. It is
// never changed once a ByOrigin has it. Values that are the same memory are the same.
type ofCluster[V any] struct{ values map[NodeName]*V }

// NewByOrigin returns the values of a map.
func NewByOrigin[V any](values map[Origin]V) ByOrigin[V] {
	var d Draft[V]
	for o, v := range values {
		d.Set(o, v)
	}
	return d.Share()
}

func (b ByOrigin[V]) find(o Origin) *V {
	if c := b.clusters[o.Cluster]; c != nil {
		return c.values[o.Node]
	}
	return nil
}

// Get returns the value of an origin; the zero value if it has none.
func (b ByOrigin[V]) Get(o Origin) V {
	v, _ := b.Lookup(o)
	return v
}

// Lookup returns the value of an origin, if it has one.
func (b ByOrigin[V]) Lookup(o Origin) (v V, has bool) {
	if p := b.find(o); p != nil {
		return *p, true
	}
	return v, false
}

// Peek returns the value of an origin, without a copy of it; nil if it has none. It must not be
// changed.
func (b ByOrigin[V]) Peek(o Origin) *V { return b.find(o) }

// Len returns how many origins have a value.
func (b ByOrigin[V]) Len() int { return b.size }

// All yields the origins and their values, in no particular order.
func (b ByOrigin[V]) All() iter.Seq2[Origin, V] {
	return func(yield func(Origin, V) bool) {
		for name, c := range b.clusters {
			for node, v := range c.values {
				if !yield(Origin{name, node}, *v) {
					return
				}
			}
		}
	}
}

// Of yields the origins of one cluster and their values, in no particular order.
func (b ByOrigin[V]) Of(cluster ClusterName) iter.Seq2[Origin, V] {
	return func(yield func(Origin, V) bool) {
		c := b.clusters[cluster]
		if c == nil {
			return
		}
		for node, v := range c.values {
			if !yield(Origin{cluster, node}, *v) {
				return
			}
		}
	}
}

// Clusters returns the clusters that have a value, or whose nodes have one, sorted.
func (b ByOrigin[V]) Clusters() []ClusterName { return slices.Sorted(maps.Keys(b.clusters)) }

// Origins returns the origins, sorted.
func (b ByOrigin[V]) Origins() []Origin {
	out := make([]Origin, 0, b.size)
	for o := range b.All() {
		out = append(out, o)
	}
	slices.SortFunc(out, Origin.Compare)
	return out
}

// Since yields the origins whose values were set or deleted since b was before, in no particular order: it
// looks only at clusters in which any was. A value that was set to what it had been can be among them.
func (b ByOrigin[V]) Since(before ByOrigin[V]) iter.Seq[Origin] {
	return func(yield func(Origin) bool) {
		for name, now := range b.clusters {
			if was := before.clusters[name]; was != now && !since(name, was, now, yield) {
				return
			}
		}
		for name, was := range before.clusters {
			if b.clusters[name] == nil && !since(name, was, nil, yield) {
				return
			}
		}
	}
}

func since[V any](name ClusterName, was, now *ofCluster[V], yield func(Origin) bool) bool {
	var before, after map[NodeName]*V
	if was != nil {
		before = was.values
	}
	if now != nil {
		after = now.values
	}
	for node, v := range after {
		if before[node] != v && !yield(Origin{name, node}) {
			return false
		}
	}
	for node := range before {
		if after[node] == nil && !yield(Origin{name, node}) {
			return false
		}
	}
	return true
}

// With returns b with another value of an origin. For many changes, use a Draft.
func (b ByOrigin[V]) With(o Origin, v V) ByOrigin[V] {
	d := b.Draft()
	d.Set(o, v)
	return d.Share()
}

// Without returns b without a value of an origin.
func (b ByOrigin[V]) Without(o Origin) ByOrigin[V] {
	d := b.Draft()
	d.Delete(o)
	return d.Share()
}

// Draft returns a Draft with the values of b.
func (b ByOrigin[V]) Draft() Draft[V] { return Draft[V]{now: b} }

// Draft is a ByOrigin in the making. The zero Draft is empty. It must not be copied after a change.
type Draft[V any] struct {
	now ByOrigin[V]
	// own is true if no ByOrigin has now.clusters, and owned has the clusters whose values none has.
	own   bool
	owned map[ClusterName]bool
}

// Share returns the values of now. What is changed in the draft afterwards does not change them.
func (d *Draft[V]) Share() ByOrigin[V] {
	d.own, d.owned = false, nil
	return d.now
}

// Set sets the value of an origin.
func (d *Draft[V]) Set(o Origin, v V) {
	c := d.ownCluster(o.Cluster)
	if c.values[o.Node] == nil {
		d.now.size++
	}
	c.values[o.Node] = &v
}

// Delete removes the value of an origin, if it has one.
func (d *Draft[V]) Delete(o Origin) {
	if d.now.find(o) == nil {
		return
	}
	c := d.ownCluster(o.Cluster)
	delete(c.values, o.Node)
	d.now.size--
	if len(c.values) == 0 {
		delete(d.now.clusters, o.Cluster)
	}
}

// Get returns the value of an origin; the zero value if it has none.
func (d *Draft[V]) Get(o Origin) V { return d.now.Get(o) }

// Lookup returns the value of an origin, if it has one.
func (d *Draft[V]) Lookup(o Origin) (v V, has bool) { return d.now.Lookup(o) }

// Peek returns the value of an origin, without a copy of it; nil if it has none. It must not be changed.
func (d *Draft[V]) Peek(o Origin) *V { return d.now.Peek(o) }

// Of yields the origins of one cluster and their values, in no particular order.
func (d *Draft[V]) Of(cluster ClusterName) iter.Seq2[Origin, V] { return d.now.Of(cluster) }

// ownCluster returns values of a cluster that no ByOrigin has: copies of them if one has these.
func (d *Draft[V]) ownCluster(name ClusterName) *ofCluster[V] {
	if !d.own {
		d.now.clusters, d.own, d.owned = maps.Clone(d.now.clusters), true, map[ClusterName]bool{}
	}
	if d.now.clusters == nil {
		d.now.clusters = map[ClusterName]*ofCluster[V]{}
	}
	c := d.now.clusters[name]
	switch {
	case c == nil:
		c = &ofCluster[V]{map[NodeName]*V{}}
	case !d.owned[name]:
		c = &ofCluster[V]{maps.Clone(c.values)}
	}
	d.now.clusters[name], d.owned[name] = c, true
	return c
}

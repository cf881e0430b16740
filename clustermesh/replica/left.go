package replica

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
)

// Times, in ticks, until nodes that their cluster's record does not list count as having left.
const (
	// leftGrace must pass before any does. The nodes of stored records were listed or heard when the
	// records were stored, and it takes a while until their daemons are heard again.
	leftGrace = 10
	// newGrace is how long a node whose daemon is a live member can be missing from the list: a new node
	// is heard before the leader lists it, and a new leader may take a while.
	newGrace = 60
	// forgetAfter is how long it is remembered of a node that is neither held nor a member since when it is
	// not listed. Otherwise a daemon that comes and goes would be new each time.
	forgetAfter = 600
	// maxUnlisted bounds how many are remembered. Others are not waited for.
	maxUnlisted = 1 << 14
)

// absence is how long a node has not been listed by its cluster.
type absence struct {
	since int // the tick at which that was found
	seen  int // the last tick at which the node was held or a member
}

// left reports whether a node was taken out of its cluster: the cluster's record does not list it, and
// its daemon is not a live member, or has been one for newGrace without being listed. Its record is
// neither kept nor accepted until it is listed. Members differ from node to node and change, and the
// list is the same for all, so the list decides in the end: otherwise those that hear the node and those
// that do not would send its record to and fro. The record is not marked as rejected, so no state needs
// undoing when the node is listed: the next exchange brings its record.
func (r *Replica) left(o clustermesh.Origin) bool {
	return r.ticks > leftGrace && o != r.self && r.unlisted(o) && (!r.members[o] || r.waited(o))
}

// unlisted reports whether a cluster's record lists its nodes without this one.
func (r *Replica) unlisted(o clustermesh.Origin) bool {
	return r.entries[clustermesh.Origin{Cluster: o.Cluster}].Record.Content.Left(o.Node)
}

// waited reports whether a node has not been listed for too long to be new.
func (r *Replica) waited(o clustermesh.Origin) bool {
	a, known := r.absent[o]
	return known && r.ticks-a.since > newGrace || !known && len(r.absent) >= maxUnlisted
}

// hidden reports whether this node itself has left, as all others see it. It keeps its record, and
// offers it to no peer that would not take it.
func (r *Replica) hidden(o clustermesh.Origin) bool {
	return o == r.self && r.unlisted(o) && r.waited(o)
}

// dropLeft notes which nodes are not listed, and drops the records of those that have left.
func (r *Replica) dropLeft() (out Output) {
	maps.DeleteFunc(r.absent, func(o clustermesh.Origin, a absence) bool {
		return !r.unlisted(o) || r.ticks-a.seen > forgetAfter
	})
	for o := range r.absent {
		if r.members[o] {
			r.sees(o)
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(r.strays), clustermesh.Origin.Compare) {
		r.sees(o)
		if r.left(o) {
			r.drop(r.entries[o])
			out.Changed = append(out.Changed, o)
		}
	}
	return out
}

// stray notes whether a node whose record is held is not listed.
func (r *Replica) stray(o clustermesh.Origin) {
	if r.unlisted(o) {
		r.strays[o] = true
	} else {
		delete(r.strays, o)
	}
}

// strayOf does so for all nodes of a cluster.
func (r *Replica) strayOf(c clustermesh.ClusterName) {
	for o := range r.view.Of(c) {
		r.stray(o)
	}
}

// sees notes that a node that is not listed is there.
func (r *Replica) sees(o clustermesh.Origin) {
	a, known := r.absent[o]
	if !known {
		if len(r.absent) >= maxUnlisted {
			return
		}
		a.since = r.ticks
	}
	a.seen = r.ticks
	r.absent[o] = a
}

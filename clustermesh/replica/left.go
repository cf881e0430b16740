package replica

import (
	"slices"

	"strait.io/strait/clustermesh"
)

// leftGrace is how many ticks must pass before any node counts as having left. The nodes of stored
// records were listed or heard when the records were stored, and it takes a while until their
// daemons are heard again.
const leftGrace = 10

// left reports whether a node was taken out of its cluster: the cluster's record does not list it,
// and its daemon is not a live member. Its record is neither kept nor accepted. The record is not
// marked as rejected, so no state needs undoing when the node is listed or heard again: the next
// exchange brings its record.
func (r *Replica) left(o clustermesh.Origin) bool {
	return r.ticks > leftGrace && o != r.self &&
		r.entries[clustermesh.Origin{Cluster: o.Cluster}].Record.Content.Left(o.Node) && !r.members[o]
}

// dropLeft drops the records of nodes that have left.
func (r *Replica) dropLeft() (out Output) {
	for o, e := range r.entries {
		if r.left(o) {
			r.drop(e)
			out.Changed = append(out.Changed, o)
		}
	}
	slices.SortFunc(out.Changed, clustermesh.Origin.Compare)
	return out
}

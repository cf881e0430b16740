package replica

import "strait.io/strait/clustermesh"

// Topology returns the neighbours of a daemon among the live members: the daemons that it keeps a
// stream to, and the only ones that it exchanges records with.
//
// It is a pure function of the set of members, so that daemons that see the same members agree
// without exchanging messages. It must be symmetric, because a stream carries one direction and
// each side opens its own. members are all others, in any order and without self; neighbours are
// some of them. The graph over all members must be connected. Otherwise records do not reach every
// member.
type Topology func(self clustermesh.Origin, members []clustermesh.Origin) (neighbours []clustermesh.Origin)

// FullMesh makes every two members neighbours.
func FullMesh(_ clustermesh.Origin, members []clustermesh.Origin) []clustermesh.Origin {
	return members
}

package replica

import "strait.io/strait/clustermesh"

// Topology says to which of the live members a daemon keeps a stream: its neighbours, with whom alone it
// exchanges records.
//
// It is a pure function of the set of members, so that daemons that see the same members agree without a
// word: whether two are neighbours must come out the same at both, since a stream carries one direction and
// each opens its own. Members hold others besides self, in any order, without self; neighbours are some of
// them. The graph over all members must be connected, or records stay where they are.
type Topology func(self clustermesh.Origin, members []clustermesh.Origin) (neighbours []clustermesh.Origin)

// FullMesh makes everybody a neighbour of everybody.
func FullMesh(_ clustermesh.Origin, members []clustermesh.Origin) []clustermesh.Origin {
	return members
}

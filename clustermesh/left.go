package clustermesh

import "slices"

// Left reports whether a node was taken out of the cluster whose record says this: its leader names the cluster's
// Nodes, and this one is not among them. A record without Nodes says nothing of any. Of a node that is heard it says
// nothing either: the leader may not have published it yet.
func (c Content) Left(node NodeName) bool {
	if node == "" || len(c.Nodes) == 0 {
		return false
	}
	_, listed := slices.BinarySearch(c.Nodes, node)
	return !listed
}

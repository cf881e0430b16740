package clustermesh

import "slices"

// Left reports whether a node was removed from the cluster whose record this is: the leader lists
// the cluster's Nodes, and this one is not among them. A record without Nodes says nothing about
// any node. It says nothing about a node that is heard either: the leader may not have listed it
// yet.
func (c Content) Left(node NodeName) bool {
	if node == "" || len(c.Nodes) == 0 {
		return false
	}
	_, listed := slices.BinarySearch(c.Nodes, node)
	return !listed
}

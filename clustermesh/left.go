package clustermesh

import "slices"

// Left reports whether a node was removed from the cluster whose record this is: the leader lists
// the cluster's Nodes, and this one is not among them. A record without Nodes decides nothing about
// any node. A node that has just been heard may not have been listed yet: package replica decides
// how long to wait for that.
func (c Content) Left(node NodeName) bool {
	if node == "" || len(c.Nodes) == 0 {
		return false
	}
	_, listed := slices.BinarySearch(c.Nodes, node)
	return !listed
}

package cluster

import (
	"cmp"
	"slices"

	"strait.io/strait/daemon/api"
)

// Remaining is what is left of a cluster's use while it is drained, by the daemons' answers.
type Remaining struct {
	// Known is true if a daemon knows the cluster.
	Known bool
	// Drained is which part of the cluster's share the drain has taken, 0 to 1: the least of any daemon.
	Drained float64
	// Nodes are those that were asked.
	Nodes []NodeOpen
	// Unasked are the nodes without a count: no context leads to them, their daemon
	// does not answer, or it cannot count. They are "CLUSTER/NODE".
	Unasked []string
}

// NodeOpen is how many connections a node has open to the drained cluster.
type NodeOpen struct {
	Node string // "CLUSTER/NODE"
	Open int
}

// Open adds up the nodes.
func (r Remaining) Open() (sum int) {
	for _, n := range r.Nodes {
		sum += n.Open
	}
	return sum
}

// Over reports whether nothing is left according to every node of the clusterset.
func (r Remaining) Over() bool {
	return r.Known && r.Drained >= 1 && r.Open() == 0 && len(r.Unasked) == 0
}

// Remains adds up the daemons' answers about a drained cluster. A dead node has no connections.
func Remains(of string, answers []Answer) Remaining {
	r := Remaining{Drained: 1}
	counted, known := map[string]bool{}, map[string]bool{}
	for _, a := range answers {
		name := a.Cluster + "/" + a.Node
		known[name] = true
		for _, n := range a.Nodes {
			known[n.Cluster+"/"+n.Name] = known[n.Cluster+"/"+n.Name] || !n.Dead
		}
		i := slices.IndexFunc(a.Clusters, func(c api.Cluster) bool { return c.Name == of })
		if i < 0 {
			continue
		}
		c := a.Clusters[i]
		r.Known, r.Drained = true, min(r.Drained, c.Drained)
		if c.Open != nil {
			counted[name] = true
			r.Nodes = append(r.Nodes, NodeOpen{name, *c.Open})
		}
	}
	if !r.Known {
		r.Drained = 0
	}
	for name, lives := range known {
		if lives && !counted[name] {
			r.Unasked = append(r.Unasked, name)
		}
	}
	slices.Sort(r.Unasked)
	slices.SortFunc(r.Nodes, func(a, b NodeOpen) int { return cmp.Or(cmp.Compare(b.Open, a.Open), cmp.Compare(a.Node, b.Node)) })
	return r
}

package clustermesh

import (
	"slices"
	"strings"
)

// NodeContent returns what a node publishes: its Node object, as the source has it, and the
// endpoints of its own pods. If there is no such object, the node states only its name, and found
// is false.
func (l Local) NodeContent(name NodeName) (c Content, found bool) {
	node := Node{Name: name}
	if i := slices.IndexFunc(l.Nodes, func(n Node) bool { return n.Name == name }); i >= 0 {
		node, found = l.Nodes[i], true
	}
	return Content{Node: &node, Endpoints: l.endpointsOn(name)}, found
}

// ClusterContent returns what a cluster's leader publishes: the exports, the global services, the
// addresses given to imports, the endpoints that name no node, the exports of all clusters that are
// younger than they claim, whether the cluster is drained, its configuration for others and, if the
// source knows all Nodes, their names.
func (l Local) ClusterContent(allocations []Allocation, late []Late) Content {
	return Content{
		Exports: l.Exports, Globals: l.Globals, Mirrors: l.Mirrors, Allocations: allocations, Endpoints: l.endpointsOn(""), Nodes: l.nodeNames(),
		Late: late, Drain: l.Drain, Drains: l.nodeDrains(), Config: l.Config,
	}
}

func (l Local) nodeNames() (out []NodeName) {
	if !l.NodesKnown {
		return nil
	}
	for _, n := range l.Nodes {
		out = append(out, n.Name)
	}
	slices.Sort(out)
	return out
}

// nodeDrains returns the drains of nodes, sorted by name, at most MaxDrains.
func (l Local) nodeDrains() (out []NodeDrain) {
	for _, n := range l.Nodes {
		if n.Drain != nil {
			out = append(out, NodeDrain{n.Name, *n.Drain})
		}
	}
	slices.SortFunc(out, func(a, b NodeDrain) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return out[:min(len(out), MaxDrains)]
}

func (l Local) endpointsOn(node NodeName) (out []Endpoint) {
	for _, e := range l.Endpoints {
		if e.Node == node {
			out = append(out, e)
		}
	}
	return out
}

package clustermesh

import "slices"

// NodeContent is what a node publishes: its Node object, as the source has it, and the endpoints of its
// own pods. If there is no such object the node says only its name, and found is false.
func (l Local) NodeContent(name NodeName) (c Content, found bool) {
	node := Node{Name: name}
	if i := slices.IndexFunc(l.Nodes, func(n Node) bool { return n.Name == name }); i >= 0 {
		node, found = l.Nodes[i], true
	}
	return Content{Node: &node, Endpoints: l.endpointsOn(name)}, found
}

// ClusterContent is what a cluster's leader publishes: the exports, the global services, the addresses given to imports, and
// the endpoints that name no node.
func (l Local) ClusterContent(allocations []Allocation) Content {
	return Content{Exports: l.Exports, Globals: l.Globals, Allocations: allocations, Endpoints: l.endpointsOn("")}
}

func (l Local) endpointsOn(node NodeName) (out []Endpoint) {
	for _, e := range l.Endpoints {
		if e.Node == node {
			out = append(out, e)
		}
	}
	return out
}

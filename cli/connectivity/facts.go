package connectivity

import (
	"cmp"
	"slices"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// Facts are what was found out besides the results, to explain failures. What could not be found out is
// not in it.
type Facts struct {
	Namespace string
	// Contexts are those of the clusters.
	Contexts map[string]string
	// Exports has what the conditions of a cluster's ServiceExport have against it, by cluster.
	Exports map[string]string
	// Zones tells for a cluster whether its CoreDNS has the zone clusterset.local.
	Zones map[string]bool
	// Policies are the NetworkPolicies in the test's namespace, by cluster.
	Policies map[string][]string
	// Nodes are what the daemons of nodes answer, by CLUSTER/NODE.
	Nodes map[string]NodeFacts
}

// NodeFacts are what the daemon of a node knows.
type NodeFacts struct {
	// Error is why it did not answer.
	Error    string
	Problems []problem.Problem
	Clusters []api.Cluster
	Nodes    []api.Node
	// Services are those of the test, by cluster.
	Services map[string]api.Service
}

// problemAbout returns the first problem of a node that is of some codes and concerns a cluster; errors
// before warnings.
func (f Facts) problemAbout(node, cluster string, codes ...problem.Code) (problem.Problem, bool) {
	var found []problem.Problem
	for _, p := range f.Nodes[node].Problems {
		if slices.Contains(codes, p.Code) && (cluster == "" || p.Ref == (problem.Ref{}) || p.Ref.Concerns(cluster) || p.Ref.Cluster == "") {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return problem.Problem{}, false
	}
	slices.SortStableFunc(found, problem.Problem.Compare)
	return found[0], true
}

// tunnel returns what the daemon of a node knows of its tunnel to another node.
func (f Facts) tunnel(from, to string) *api.Tunnel {
	for _, n := range f.Nodes[from].Nodes {
		if n.Cluster+"/"+n.Name == to {
			return n.Tunnel
		}
	}
	return nil
}

// cluster returns what the daemon of a node knows of a cluster.
func (f Facts) cluster(from, name string) (api.Cluster, bool) {
	for _, c := range f.Nodes[from].Clusters {
		if c.Name == name {
			return c, true
		}
	}
	return api.Cluster{}, false
}

// context names a cluster's context for a command.
func (f Facts) context(cluster string) string { return cmp.Or(f.Contexts[cluster], cluster) }

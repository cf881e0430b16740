package gke

import (
	"strings"

	"strait.io/strait/clustermesh"
)

// SharedElsewhere returns the other clusters that share a Service by an object of this one, by their policies'
// names, sorted.
func SharedElsewhere(s clustermesh.State, own clustermesh.ClusterName) map[string][]string {
	out := map[string][]string{}
	for _, c := range s.Clusters() {
		for _, e := range s.Records.Get(clustermesh.Origin{Cluster: c}).Content.Exports {
			if c != own && strings.HasPrefix(e.Policy, string(own)+"/") {
				out[e.Policy] = append(out[e.Policy], string(c))
			}
		}
	}
	return out
}

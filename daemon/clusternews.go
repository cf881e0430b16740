package daemon

import (
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
)

// clusterChange is a cluster that is heard in another way than before.
type clusterChange struct {
	cluster clustermesh.ClusterName
	text    string
}

// clusterNews returns the other clusters whose state changed, sorted. It looks only at clusters of which any
// contact was set.
func clusterNews(before, now clustermesh.ByOrigin[clustermesh.Contact], own clustermesh.ClusterName) (out []clusterChange) {
	var touched []clustermesh.ClusterName
	for o := range now.Since(before) {
		if o.Cluster != own && !slices.Contains(touched, o.Cluster) {
			touched = append(touched, o.Cluster)
		}
	}
	slices.Sort(touched)
	for _, c := range touched {
		was, had := stateOf(before, c)
		is, has := stateOf(now, c)
		switch {
		case had == has && was == is:
		case !has:
			out = append(out, clusterChange{c, "cluster left"})
		case is == api.Joined:
			out = append(out, clusterChange{c, "cluster joined"})
		case is == api.Quiet:
			out = append(out, clusterChange{c, "no daemon of the cluster is heard, its machines answer"})
		default:
			out = append(out, clusterChange{c, "the cluster is not heard"})
		}
	}
	return out
}

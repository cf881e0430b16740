package daemon

import (
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// obey tells the source what the clusters say whose configuration is accepted. Behind is true while the
// source's word does not follow from that yet.
func (d *Daemon) obey() (behind bool, problems []clustermesh.Problem) {
	from := d.config.configFrom(d.self().Cluster)
	followed := d.kube.obey(func() []clustermesh.ClusterConfig {
		said, _ := d.gossip.State().Config(from)
		return said
	})
	return !followed, unpinnedConfig(from, d.trust.members)
}

// unpinnedConfig reports the clusters whose configuration would be accepted if they were pinned.
func unpinnedConfig(from, members []clustermesh.ClusterName) (out []clustermesh.Problem) {
	for _, c := range from {
		if !slices.Contains(members, c) {
			out = append(out, clustermesh.Problem{
				Code: problem.ConfigNotPinned, Object: "cluster " + string(c), Field: "source.kubernetes.acceptConfigFrom",
				Message: "is not pinned, so its configuration does not count: without a pin, anybody who has the gossip key could write it",
				Try:     fmt.Sprintf("pin it with strait clusterset connect or accept, or take %s out of the list", c),
			})
		}
	}
	return out
}

// unknownConfig returns the clusters whose configuration is accepted and not known. One that is pinned no
// more says nothing that counts.
func (d *Daemon) unknownConfig(s clustermesh.State) []clustermesh.ClusterName {
	_, unknown := s.Config(d.config.configFrom(d.self().Cluster))
	return slices.DeleteFunc(unknown, func(c clustermesh.ClusterName) bool { return !slices.Contains(d.trust.members, c) })
}

// elsewhere returns the other clusters that share a Service by an object of this one, by their policies'
// names, sorted.
func elsewhere(s clustermesh.State, own clustermesh.ClusterName) map[string][]string {
	out := map[string][]string{}
	for _, c := range s.Clusters() {
		for _, e := range s.Records[clustermesh.Origin{Cluster: c}].Content.Exports {
			if c != own && strings.HasPrefix(e.Policy, string(own)+"/") {
				out[e.Policy] = append(out[e.Policy], string(c))
			}
		}
	}
	return out
}

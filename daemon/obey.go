package daemon

import (
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/belief"
)

// obey tells the source what the clusters say whose configuration is accepted. Behind is true while the
// source's word does not follow from that yet.
func (d *Daemon) obey() (behind bool, problems []clustermesh.Problem) {
	from := d.config.configFrom(d.self().Cluster)
	followed := d.kube.obey(func() []clustermesh.ClusterConfig {
		said, _ := d.gossip.State().Config(from)
		return said
	})
	return !followed, belief.UnpinnedConfig(from, d.trust.members)
}

// unknownConfig returns the clusters whose configuration is accepted and not known. One that is pinned no
// more says nothing that counts.
func (d *Daemon) unknownConfig(s clustermesh.State) []clustermesh.ClusterName {
	_, unknown := s.Config(d.config.configFrom(d.self().Cluster))
	return slices.DeleteFunc(unknown, func(c clustermesh.ClusterName) bool { return !slices.Contains(d.trust.members, c) })
}

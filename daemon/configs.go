package daemon

import (
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/trustlevel"
)

// followConfigs gives the source the configurations of the clusters in acceptConfigFrom. Behind is true while
// what the source returns does not reflect them yet.
func (d *Daemon) followConfigs() (behind bool, problems []clustermesh.Problem) {
	from := d.config.configFrom(d.self().Cluster)
	followed := d.kube.followConfigs(func() []clustermesh.ClusterConfig {
		configs, _ := d.gossip.State().Config(from)
		return configs
	})
	return !followed, trustlevel.UnpinnedConfig(from, d.trust.members)
}

// unknownConfig returns the clusters whose configuration is accepted and not known yet. That of a cluster
// that is no longer pinned does not count.
func (d *Daemon) unknownConfig(s clustermesh.State) []clustermesh.ClusterName {
	_, unknown := s.Config(d.config.configFrom(d.self().Cluster))
	return slices.DeleteFunc(unknown, func(c clustermesh.ClusterName) bool { return !slices.Contains(d.trust.members, c) })
}

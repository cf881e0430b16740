package daemon

import (
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/mirrorer"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
)

// writeMirrors gives the mirrorer what other clusters offer. It is called only while this node leads
// its cluster.
func (d *Daemon) writeMirrors(k *kubernetes, local clustermesh.Local, m *moment) {
	own, members, barred := d.self().Cluster, d.trust.members, d.config.barred()
	policies, objects := k.source.Policies()
	k.mirrors.Submit(func() mirrorer.View {
		v := mirrorView(policies, own, members, local, m.state)
		v.Barred, v.Objects = barred, objects
		return v
	})
}

// mirrorView returns what the leader of a cluster knows of what others offer.
func mirrorView(policies []policy.Policy, own clustermesh.ClusterName, members []clustermesh.ClusterName, local clustermesh.Local, s clustermesh.State) mirrorer.View {
	known := mcs.View{Cluster: own, Clusters: mcs.KnowledgeOf(own, s), Members: members}
	v := mirrorer.View{
		Cluster: own, Policies: policies, Namespaces: make(map[string]bool, len(local.Namespaces)),
		Unknown: func(c string) bool { return !known.Settled(clustermesh.ClusterName(c)) },
	}
	for _, ns := range local.Namespaces {
		v.Namespaces[ns] = true
	}
	if len(policies) == 0 {
		return v
	}
	for c, k := range known.Clusters {
		if c != own && k == mcs.Current {
			v.Clusters = append(v.Clusters, mirror.Offer(s, c, own, local.ClusterIPs))
		}
	}
	return v
}

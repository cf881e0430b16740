package daemon

import (
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gke"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/daemon/objects"
)

// writeObjects gives the writers what the cluster's objects should be. It is called only while this
// node leads its cluster.
func (d *Daemon) writeObjects(k *kubernetes, local clustermesh.Local, m *moment) {
	c, own := d.mcsConfig(), d.self().Cluster
	v := objects.View(c, own, d.trust.members, local, m.state, m.result)
	k.writer.Submit(v)
	asked := gke.View{
		Cluster: own, GKE: k.source.GKE(), Backend: c.DerivedService, Namespaces: v.Namespaces,
		Unknown: d.unknownConfig(m.state), Elsewhere: gke.SharedElsewhere(m.state, own),
	}
	k.gke.Submit(func() gke.View { return asked })
}

func (d *Daemon) mcsConfig() mcs.Config {
	k := d.config.Source.Kubernetes
	return mcs.Config{ImportSlices: k.ImportSlices, ClusterSetIPs: k.ClusterSetIPs, DerivedPrefix: k.DerivedPrefix, Barred: d.config.barred()}
}

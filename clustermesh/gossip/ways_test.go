package gossip

import (
	"testing"

	"strait.io/strait/clustermesh"
)

// comesFrom reports whether, from each daemon, the record of an origin can be followed to its writer,
// by what each says of how the same version came.
func comesFrom(ds []*daemon, o, writer clustermesh.Origin) bool {
	arrivals := map[clustermesh.Origin]Arrival{}
	for _, d := range ds {
		arrivals[d.cfg.Self] = d.Ways().Arrivals[o]
	}
	for _, d := range ds {
		at, hops := d.cfg.Self, 0
		for arrivals[at].From != at {
			next := arrivals[at].From
			if hops++; hops > len(ds) || arrivals[next].Stamp != arrivals[at].Stamp {
				return false
			}
			at = next
		}
		if at != writer || arrivals[at].At.IsZero() {
			return false
		}
	}
	return true
}

// TestWayOfAClustersRecord: the record of a cluster can be followed to its leader, also if another one
// led before.
func TestWayOfAClustersRecord(t *testing.T) {
	t.Parallel()
	c1 := config(origin("a", "n1"))
	d1, d2, d3 := start(t, c1), start(t, config(origin("a", "n2"), c1.Bind)), start(t, config(origin("b", "n1"), c1.Bind))
	for _, d := range []*daemon{d1, d2, d3} {
		d.say(1)
	}
	a := clustermesh.Origin{Cluster: "a"}
	eventually(t, "n1 leads", func() bool { return d1.Leader() && !d2.Leader() })
	d1.PublishCluster(clustermesh.Content{Nodes: []clustermesh.NodeName{"n1"}})
	eventually(t, "the record comes from n1", func() bool { return comesFrom([]*daemon{d1, d2, d3}, a, d1.cfg.Self) })
	d1.stop()
	eventually(t, "n2 leads, and the record comes from it", func() bool {
		d2.PublishCluster(clustermesh.Content{Nodes: []clustermesh.NodeName{"n1", "n2"}})
		return comesFrom([]*daemon{d2, d3}, a, d2.cfg.Self)
	})
}

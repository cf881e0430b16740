package gossip

import (
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/topology"
)

// star makes all others neighbours of one hub alone.
type star struct {
	topology.FullMesh
	hub clustermesh.Origin
}

func (s star) Ways(v topology.View) topology.Ways {
	var out topology.Flood
	for _, o := range v.Members {
		if v.Self == s.hub || o == s.hub {
			out = append(out, o)
		}
	}
	return out
}

// TestOtherTopology: another topology is another set of streams, and nothing else has to know. Around a
// hub all hold what all say, though none but the hub has more than one stream; without it they
// exchange nothing.
func TestOtherTopology(t *testing.T) {
	t.Parallel()
	hub := config(origin("a", "hub"))
	around := star{hub: hub.Self}
	hub.topology = around
	ds := []*daemon{start(t, hub)}
	for _, o := range []clustermesh.Origin{origin("a", "n1"), origin("a", "n2"), origin("b", "n1")} {
		c := config(o, hub.Bind)
		c.topology = around
		ds = append(ds, start(t, c))
	}
	same := func(n int, ds []*daemon) func() bool {
		return func() bool {
			for i, d := range ds {
				for _, e := range ds {
					if e.said(d.cfg.Self) != n+i || e.contact(d.cfg.Self) != clustermesh.Alive {
						return false
					}
				}
			}
			return true
		}
	}
	for _, n := range []int{10, 20} {
		for i, d := range ds {
			d.say(n + i)
		}
		t.Logf("all hold what all say after %s", eventually(t, "all hold what all say", same(n, ds)))
	}
	for _, d := range ds[1:] {
		if got := d.neighbours(); !slices.Equal(got, []clustermesh.Origin{hub.Self}) {
			t.Errorf("%s: streams to %v", d.cfg.Self, got)
		}
	}

	ds[0].stop()
	for _, d := range ds[1:] {
		eventually(t, "the hub is lost, and the others are not", func() bool {
			return d.contact(hub.Self) == clustermesh.Quiet && len(d.neighbours()) == 0 &&
				!slices.ContainsFunc(ds[1:], func(e *daemon) bool { return d.contact(e.cfg.Self) != clustermesh.Alive })
		})
	}
	ds[1].say(31)
	for range 30 {
		time.Sleep(100 * time.Millisecond)
		if ds[2].said(ds[1].cfg.Self) == 31 || ds[3].said(ds[1].cfg.Self) == 31 {
			t.Fatal("it went by a stream that should not stand")
		}
	}
	hub.topology = around
	ds[0] = start(t, hub)
	for i, d := range ds {
		d.say(30 + i)
	}
	eventually(t, "with the hub it goes on", same(30, ds))
}

// neighbours are to whom the daemon keeps streams.
func (d *daemon) neighbours() []clustermesh.Origin {
	return ask(d.Gossip, func(n *node.Node, _ time.Time) []clustermesh.Origin { return n.Neighbours() })
}

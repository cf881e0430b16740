package gossip

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/topology"
)

// crowd are daemons, and what each of them said last.
type crowd struct {
	t    *testing.T
	all  []*daemon
	said map[clustermesh.Origin]int
}

// crowdOf starts daemons of clusters, each of which knows the first one.
func crowdOf(t *testing.T, clusters, nodes int, change func(*Config)) *crowd {
	c := &crowd{t: t, said: map[clustermesh.Origin]int{}}
	for i := range clusters * nodes {
		cfg := config(origin(fmt.Sprint("c", i/nodes), fmt.Sprintf("n%02d", i%nodes)))
		if i > 0 {
			cfg.Seeds = []string{c.all[0].cfg.Bind.String()}
		}
		change(&cfg)
		c.all = append(c.all, start(t, cfg))
		c.say(i, 1)
	}
	return c
}

func (c *crowd) say(i, n int) {
	c.all[i].say(n)
	c.said[c.all[i].cfg.Self] = n
}

// agree waits until all that run have heard what all said last, and each hears each.
func (c *crowd) agree(what string) {
	c.t.Helper()
	took := eventually(c.t, what, func() bool {
		for _, d := range c.all {
			for _, e := range c.all {
				o := e.cfg.Self
				if d.cancel != nil && (d.said(o) != c.said[o] || e.cancel != nil && e != d && !d.contact(o).Heard()) {
					return false
				}
			}
		}
		return true
	})
	c.t.Log(what, "after", took)
}

// relays returns which daemons of a cluster are relays.
func (c *crowd) relays(cluster clustermesh.ClusterName) (out []*daemon) {
	var members []clustermesh.Origin
	for _, d := range c.all {
		members = append(members, d.cfg.Self)
	}
	for _, d := range c.all {
		if o := d.cfg.Self; o.Cluster == cluster && (topology.Relays{}).Roles(o, members).Relay {
			out = append(out, d)
		}
	}
	return out
}

// TestRelaysOfMany: in a clusterset of more than 20 nodes, daemons have streams to two relays, and
// yet all hear what all say, each hears each, also a daemon that sees no need for relays. When the
// relays of a cluster end, others take their place.
func TestRelaysOfMany(t *testing.T) {
	mesh := origin("c1", "n05")
	c := crowdOf(t, 3, 10, func(cfg *Config) {
		if cfg.Self == mesh {
			cfg.topology = topology.FullMesh{}
		}
	})
	c.agree("all hear all")
	relay := map[*daemon]bool{}
	for _, cluster := range []clustermesh.ClusterName{"c0", "c1", "c2"} {
		for _, d := range c.relays(cluster) {
			relay[d] = true
		}
	}
	eventually(t, "most have streams to two relays, and to the one that has a stream to each", func() bool {
		for _, d := range c.all {
			n := ask(d.Gossip, func(n *node.Node, _ time.Time) int { return len(n.Neighbours()) })
			if d.cfg.Self != mesh && !relay[d] && n > 3 {
				return false
			}
		}
		return true
	})
	c.say(0, 2)
	c.say(15, 2)
	c.agree("two changes are everywhere")
	eventually(t, "their ways lead to their writers", func() bool {
		return comesFrom(c.all, c.all[0].cfg.Self, c.all[0].cfg.Self) && comesFrom(c.all, c.all[15].cfg.Self, c.all[15].cfg.Self)
	})
	for _, d := range c.relays("c1") {
		d.stop()
	}
	for i, d := range c.all {
		if d.cancel != nil && i%4 == 0 {
			c.say(i, 3)
		}
	}
	c.agree("without the relays of a cluster, changes are everywhere")
}

// TestInventedRelays: whoever has the gossip key can invent so many members that a small clusterset has
// relays; but not be one of them, nor keep a record from a node.
func TestInventedRelays(t *testing.T) {
	pins, ranges := pinned("west", "east"), map[clustermesh.ClusterName]byte{"west": 0, "east": 1}
	var real []*daemon
	var seed []netip.AddrPort
	for _, o := range []clustermesh.Origin{
		origin("west", "n1"), origin("west", "n2"), origin("west", "n3"), origin("west", "n4"), origin("east", "n1"), origin("east", "n2"),
	} {
		d := start(t, signing(config(o, seed...), pins))
		d.Publish(placed(o, ranges[o.Cluster], "1"))
		if real = append(real, d); seed == nil {
			seed = []netip.AddrPort{d.cfg.Bind}
		}
	}
	agree := func(what string, n int) {
		t.Helper()
		t.Log(what, "after", eventually(t, what, func() bool {
			for _, d := range real {
				for _, e := range real {
					if d.said(e.cfg.Self) != n || d != e && !d.contact(e.cfg.Self).Heard() {
						return false
					}
				}
			}
			return true
		}))
	}
	agree("all hear all", 1)
	for i := range 16 {
		start(t, config(origin("west", fmt.Sprint("x", i)), seed...))
	}
	eventually(t, "there are relays", func() bool {
		for _, d := range real {
			if len(d.Ways().Relays) == 0 {
				return false
			}
		}
		return true
	})
	eventually(t, "the relays are real nodes", func() bool {
		for _, d := range real {
			for o := range d.Ways().Relays {
				if !slices.ContainsFunc(real, func(e *daemon) bool { return e.cfg.Self == o }) {
					return false
				}
			}
		}
		return true
	})
	for _, d := range real {
		d.Publish(placed(d.cfg.Self, ranges[d.cfg.Self.Cluster], "2"))
	}
	agree("what changes is everywhere", 2)
}

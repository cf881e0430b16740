package gossip

import (
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// rootOf returns the root that signed the statement about a node, as a daemon sees it.
func (d *daemon) rootOf(o clustermesh.Origin) authority.PublicKey {
	return d.Trust().Statements[o].Root
}

// TestReroot: a machine loses the root and gets it back while it runs. It signs for others exactly while
// it has it. Without it, it does not lead, and what it says is believed all the same, over a restart too.
func TestReroot(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	var tokens atomic.Int64
	first, second := origin("west", "n1"), origin("west", "n2")
	one := attesting(signing(config(first), pins), second, &tokens)
	one.StateDir = t.TempDir()
	d1 := start(t, one)
	d1.tell(0, 1)
	d2 := start(t, attesting(following(config(second, one.Bind), pins), first, &tokens))
	east := start(t, signing(config(origin("east", "n1"), one.Bind), pins))
	content := func(o clustermesh.Origin, number string, follower bool) clustermesh.Content {
		c := placed(o, 0, number)
		c.Node.Follower = follower
		return c
	}
	d2.Publish(content(second, "2", true))
	eventually(t, "both are believed, and the one with the root leads", func() bool {
		return east.said(first) == 1 && east.said(second) == 2 && d1.Leader()
	})

	d1.Reroot(nil)
	if d1.Leader() {
		t.Error("it leads without the root")
	}
	d1.Publish(content(first, "3", true))
	eventually(t, "what it says without the root is believed", func() bool { return east.said(first) == 3 })
	time.Sleep(2 * beat)
	if d1.Leader() || d1.PublishCluster(clustermesh.Content{Nodes: []clustermesh.NodeName{"n1"}}) {
		t.Error("it leads again without the root")
	}
	d1.stop()
	d1 = start(t, following(one, pins))
	d1.Publish(content(first, "4", true))
	eventually(t, "its own record has the statement", func() bool { return east.said(first) == 4 })
	if ps := east.Problems(); len(ps) > 0 {
		t.Errorf("problems: %v", ps)
	}

	d2.Reroot(root("west"))
	d2.Publish(content(second, "5", false))
	eventually(t, "the other leads, who has it now", func() bool { return d2.Leader() && east.said(second) == 5 })
	changed := content(first, "6", true)
	changed.Node.Prefixes, changed.Endpoints = nil, nil
	d1.Publish(changed)
	eventually(t, "the other signs for it", func() bool {
		s, known := east.Trust().Statements[first]
		return known && len(s.Prefixes) == 0
	})
}

// TestRerootRotates: with a new root beside the old one, the leader signs all again at once: the
// statement about itself, and the cluster's record. Who asks follows.
func TestRerootRotates(t *testing.T) {
	t.Parallel()
	pins, next := pinned("west", "east"), root("west's next")
	pin := pins["west"]
	pin.Roots = append(pin.Roots, next.Public())
	pins["west"] = pin
	leads, asks := origin("west", "n1"), origin("west", "n2")
	var tokens atomic.Int64
	keeps := attesting(signing(config(leads), pins), asks, &tokens)
	keeps.StateDir = t.TempDir()
	d := start(t, keeps)
	d.tell(0, 1)
	follower := start(t, following(config(asks, d.cfg.Bind), pins))
	c := placed(asks, 0, "2")
	c.Node.Follower = true
	follower.Publish(c)
	east := start(t, signing(config(origin("east", "n1"), d.cfg.Bind), pins))
	say := clustermesh.Content{Nodes: []clustermesh.NodeName{"n1", "n2"}}
	all := func(k authority.PublicKey) func() bool {
		return func() bool {
			d.PublishCluster(say)
			return east.rootOf(leads) == k && east.rootOf(asks) == k && east.Trust().Roots["west"] == k
		}
	}
	eventually(t, "the old root signs all", all(root("west").Public()))
	d.stop()
	d = start(t, keeps) // which has read what the old root signed
	d.tell(0, 1)
	d.Reroot(next)
	eventually(t, "the new root signs all", all(next.Public()))
	if k, known := d.Trust().Roots["west"]; known && k != next.Public() {
		t.Error("the leader itself says that the old root signed what it has just written")
	}
	if ps := append(east.Problems(), follower.Problems()...); len(ps) > 0 {
		t.Errorf("problems: %v", ps)
	}
}

// TestLax: a machine whose pins are not in force believes everybody, and signs all the same, as soon as it
// can: before that it says what it says without a seal.
func TestLax(t *testing.T) {
	t.Parallel()
	pins := pinned("west")
	var tokens atomic.Int64
	signs, asks := origin("west", "n1"), origin("west", "n2")
	lax := func(c Config) Config { c.Authority.Lax = true; return c }
	d1 := start(t, lax(attesting(following(config(signs), pins), asks, &tokens)))
	d1.tell(0, 1)
	d2 := start(t, lax(following(config(asks, d1.cfg.Bind), pins)))
	d2.tell(0, 2)
	stranger := start(t, config(origin("east", "n1"), d1.cfg.Bind))
	stranger.say(3)
	eventually(t, "all believe each other", func() bool {
		return d1.said(asks) == 2 && d2.said(signs) == 1 && d1.said(stranger.cfg.Self) == 3 && stranger.said(asks) == 2
	})
	if s := d1.Trust(); s.Sealed[asks] || s.Sealed[signs] || d1.Leader() || d2.Leader() {
		t.Errorf("no node has the root, and sealed is %v; leaders %v %v", s.Sealed, d1.Leader(), d2.Leader())
	}
	d1.Reroot(root("west"))
	eventually(t, "both sign", func() bool { s := stranger.Trust(); return s.Sealed[asks] && s.Sealed[signs] })
	eventually(t, "the one with the root leads", func() bool { return d1.Leader() && !d2.Leader() })
}

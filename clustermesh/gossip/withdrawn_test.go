package gossip

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

// taking is a cluster, west, that gives a prefix of one of its nodes to another one.
type taking struct {
	*testing.T
	pins                       authority.Pins
	objects                    atomic.Pointer[authority.Objects]
	behind                     atomic.Int64 // of the signer's clock
	config                     Config       // of keeper
	keeper, first, third, east *daemon
	own, theirs                netip.Prefix
}

// newTaking starts a leader with the root, a node of the cluster that has two prefixes by a statement that
// should have been renewed, one that has none yet, and a daemon of another cluster.
func newTaking(t *testing.T, after time.Duration) *taking {
	w := &taking{T: t, pins: pinned("west", "east", "north"), own: netip.MustParsePrefix("10.0.1.0/24"), theirs: netip.MustParsePrefix("10.0.9.0/24")}
	n1, n2, n3 := origin("west", "n1"), origin("west", "n2"), origin("west", "n3")
	w.objects.Store(w.says([]netip.Prefix{w.own, w.theirs}, nil))
	w.behind.Store(int64(2 * time.Hour))
	w.config = signing(config(n2), w.pins)
	w.config.StateDir = t.TempDir()
	w.config.Attest = func(context.Context, authority.Request) error { return nil }
	w.config.Objects = func() (authority.Objects, bool) { return *w.objects.Load(), true }
	w.config.clock = func() time.Time { return time.Now().Add(-time.Duration(w.behind.Load())) }
	w.keeper = w.leads(after)
	w.first = start(t, following(config(n1, w.keeper.cfg.Bind), w.pins))
	w.east = start(t, signing(config(origin("east", "n1"), w.keeper.cfg.Bind), w.pins))
	w.follows(w.first, 1, 0, w.own, w.theirs)
	eventually(t, "n1 is believed", func() bool { return w.east.said(n1) == 1 && w.keeper.said(n1) == 1 })
	w.third = start(t, following(config(n3, w.keeper.cfg.Bind), w.pins))
	return w
}

// leads starts the leader.
func (w *taking) leads(after time.Duration) *daemon {
	w.Helper()
	w.config.Authority.WithdrawAfter = after
	g, err := New(w.config)
	if err != nil {
		w.Fatal(err)
	}
	d := running(w.T, g)
	d.tell(1, 2)
	eventually(w.T, "n2 leads", d.Leader)
	d.PublishCluster(clustermesh.Content{})
	return d
}

func (w *taking) says(first, third []netip.Prefix) *authority.Objects {
	at := func(n byte) []netip.Addr { return []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n + 1})} }
	return &authority.Objects{All: true, Nodes: []authority.Holder{
		{Name: "n1", Addresses: at(0), Annotated: first}, {Name: "n2", Addresses: at(1)}, {Name: "n3", Addresses: at(2), PodCIDRs: third},
	}}
}

// follows publishes what a node without the root says.
func (w *taking) follows(d *daemon, number byte, place byte, prefixes ...netip.Prefix) {
	content := placed(d.cfg.Self, place, "")
	content.Node.Follower, content.Node.Prefixes = true, prefixes
	content.Endpoints[0].Pod, content.Endpoints[0].Addr = string('0'+number), prefixes[0].Addr().Next()
	d.Publish(content)
}

// take gives the second prefix of the first node to the third.
func (w *taking) take() {
	w.Helper()
	w.behind.Store(0)
	w.objects.Store(w.says([]netip.Prefix{w.own}, []netip.Prefix{w.theirs}))
	w.keeper.tell(1, 3)
	w.follows(w.third, 3, 2, w.theirs)
	eventually(w.T, "the other node has the prefix", func() bool { return slices.Equal(w.stated(w.third), []netip.Prefix{w.theirs}) })
}

// stated are the prefixes that a daemon of another cluster believes of a node.
func (w *taking) stated(d *daemon) []netip.Prefix {
	return w.east.Trust().Statements[d.cfg.Self].Prefixes
}

// withdrawn is what another cluster knows to be withdrawn.
func (w *taking) withdrawn() []clustermesh.Withdrawal {
	return w.east.State().Records.Get(origin("west", "")).Content.Withdrawn
}

// entry is a record that a daemon holds.
func (d *daemon) entry(o clustermesh.Origin) (found replica.Entry) {
	for _, e := range ask(d.Gossip, func(n *node.Node, _ time.Time) []replica.Entry { return n.Entries() }) {
		if e.Record.Origin == o {
			found = e
		}
	}
	return found
}

// believes makes a follower ask for its statement, or not any more, whatever happens.
func (d *daemon) believes(signers authority.Pins) {
	d.Repin(signers)
}

// TestNodeKeepsStatement: a node does not ask for another statement when its cluster has given one
// of its prefixes to another node. Soon no daemon believes it, in any cluster: not one that starts
// then, and not after the leader was restarted. When the node asks, it is believed again.
func TestNodeKeepsStatement(t *testing.T) {
	t.Parallel()
	w := newTaking(t, 2*time.Second)
	stolen := w.first.cfg.Self
	w.first.believes(nil)
	old := w.east.entry(stolen)
	w.take()
	eventually(t, "the leader names it", func() bool { return w.keeper.hasProblem("node west/n1", "has not requested another one") })
	eventually(t, "no node believes it", func() bool {
		return w.east.said(stolen) == -1 && w.keeper.said(stolen) == -1 && w.third.said(stolen) == -1
	})
	eventually(t, "all say so", func() bool { return w.east.hasProblem("cluster west", "withdrawn", "west/n1") })
	if n := w.east.said(w.third.cfg.Self); n != 3 {
		t.Errorf("the other node says %d", n)
	}

	w.keeper.stop()
	w.keeper = w.leads(2 * time.Second)
	north := start(t, signing(config(origin("north", "n1"), w.keeper.cfg.Bind), w.pins))
	eventually(t, "a newcomer hears what was withdrawn", func() bool {
		ws := north.State().Records.Get(origin("west", "")).Content.Withdrawn
		return len(ws) == 1 && ws[0].Node == stolen.Node && slices.Equal(ws, w.withdrawn())
	})
	north.inject(old)
	eventually(t, "it says so", func() bool { return north.hasProblem("cluster west", "withdrawn", "west/n1") })
	if n := north.said(stolen); n != -1 {
		t.Errorf("it believes %d", n)
	}

	w.first.believes(w.pins)
	eventually(t, "it is believed again", func() bool { return w.east.said(stolen) == 1 && north.said(stolen) == 1 })
	if got := w.stated(w.first); !slices.Equal(got, []netip.Prefix{w.own}) {
		t.Errorf("it has %v", got)
	}
}

// TestNodeAsksInTime: a node that does not know that a prefix is another node's asks as soon as its
// statement is to be withdrawn, so it loses nothing else, at no time.
func TestNodeAsksInTime(t *testing.T) {
	t.Parallel()
	w := newTaking(t, 15*time.Second)
	honest := w.first.cfg.Self
	w.take()
	var lost atomic.Int64
	sees := func() bool {
		if w.east.said(honest) != 1 {
			lost.Add(1)
		}
		return true
	}
	eventually(t, "it has what is left to it", func() bool { return sees() && slices.Equal(w.stated(w.first), []netip.Prefix{w.own}) })
	eventually(t, "what it had is withdrawn", func() bool { return sees() && len(w.withdrawn()) == 1 })
	eventually(t, "and the time has come", func() bool { return sees() && w.withdrawn()[0].InForce(time.Now().Add(-time.Second)) })
	if n := lost.Load(); n > 0 {
		t.Errorf("it was not believed %d times", n)
	}
}

// TestReplacedStatement: a node gave a prefix back. Who brings its statement of then to a daemon
// that never heard of the node is not believed.
func TestReplacedStatement(t *testing.T) {
	t.Parallel()
	w := newTaking(t, time.Second)
	wide := w.east.entry(w.first.cfg.Self)
	w.behind.Store(0)
	w.follows(w.first, 4, 0, w.own)
	eventually(t, "it has less", func() bool { return w.east.said(w.first.cfg.Self) == 4 && len(w.stated(w.first)) == 1 })
	eventually(t, "the rest is withdrawn", func() bool { return len(w.withdrawn()) == 1 && w.withdrawn()[0].InForce(time.Now()) })
	w.first.stop()
	north := start(t, signing(config(origin("north", "n1")), w.pins))
	said := w.east.entry(origin("west", ""))
	north.inject(said)
	north.inject(wide)
	if n := north.said(w.first.cfg.Self); n != -1 || !north.hasProblem("cluster west", "withdrawn", "west/n1") {
		t.Errorf("it believes %d; %v", n, north.Problems())
	}
	if n := w.east.said(w.first.cfg.Self); n != 4 {
		t.Errorf("who knew it believes %d", n)
	}
}

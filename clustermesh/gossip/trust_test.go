package gossip

import (
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/authority/fake"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

var root, seeded, pinned, placed = fake.Root, fake.Key, fake.Pins, fake.Placed

// signing returns the configuration of a daemon that signs, and believes the pinned clusters.
func signing(c Config, pins authority.Pins) Config {
	c.Authority = &Authority{Root: root(string(c.Self.Cluster)), Node: *seeded("key of " + c.Self.String()), Pins: pins}
	return c
}

// inject makes a daemon that has the gossip key spread a record as if it had received it.
func (d *daemon) inject(e replica.Entry) {
	d.do(func(n *node.Node, now time.Time) {
		s, err := n.Opened(node.Peer{Peer: member.Peer{ID: member.ID{Origin: origin("nobody", "n1"), Boot: 1}}}, node.Shown{}, "192.0.2.99", now)
		if err != nil {
			d.t.Error(err)
			return
		}
		s.Receive(&replica.Snapshot{Entries: []replica.Entry{e}}, now)
		s.Close(now)
	})
}

// forged is a record of an origin that is newer than what the origin wrote, and than what was forged
// before.
func forged(t *testing.T, o clustermesh.Origin, c clustermesh.Content) replica.Entry {
	t.Helper()
	epoch := uint64(time.Now().Add(time.Minute).UnixNano())
	if o.Node == "" {
		epoch = uint64(time.Now().Add(time.Minute).UnixMilli())
	}
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: epoch, Version: 1}, Content: c})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestForgedRecords: an attacker with the gossip key, and a root and a node of its own, writes records
// in the name of others. No daemon believes them, and each reports that.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	west := signing(config(origin("west", "n1")), pins)
	east := signing(config(origin("east", "n1"), west.Bind), pins)
	dw, de := start(t, west), start(t, east)
	dw.Publish(placed(west.Self, 0, "1"))
	de.Publish(placed(east.Self, 1, "2"))
	honest := func() bool { return dw.said(east.Self) == 2 && de.said(west.Self) == 1 }
	eventually(t, "they believe each other", honest)
	if ps := append(dw.Problems(), de.Problems()...); len(ps) > 0 {
		t.Errorf("among honest daemons: %v", ps)
	}

	mallory := start(t, signing(config(origin("mallory", "n1"), west.Bind), nil))
	mallory.say(3)
	eventually(t, "west refuses a cluster that is not pinned", func() bool { return dw.hasProblem("cluster mallory", "not pinned") })

	raw := func(e replica.Entry) []byte {
		b, err := e.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	own := mallory.statement()
	eastern := de.statement()
	key, badRoot := *seeded("key of mallory/n1"), *root("mallory")
	lie := func() replica.Entry { return forged(t, east.Self, placed(east.Self, 1, "666")) }
	invented := func() replica.Entry {
		return forged(t, origin("east", "n666"), placed(origin("east", "n666"), 1, "666"))
	}
	clusterLie := func() replica.Entry {
		return forged(t, origin("east", ""), clustermesh.Content{Nodes: []clustermesh.NodeName{"n1", "n666"}})
	}
	with := func(e replica.Entry, by authority.PrivateKey, statement []byte) replica.Entry {
		return e.Sealed(authority.Seal(by, raw(e), statement))
	}
	for _, c := range []struct {
		name, counted string
		e             replica.Entry
	}{
		{"not signed", "unsigned", lie()},
		{"an invented node", "unsigned", invented()},
		{"the sender's key and statement", "not_pinned", with(lie(), key, own)},
		{"the sender's key and the victim's statement", "forged", with(lie(), key, eastern)},
		{"the seal of another record", "forged", invented().Sealed(with(lie(), key, eastern).Seal())},
		{"the cluster's record, not signed", "unsigned", clusterLie()},
		{"the cluster's record, by another root", "forged", with(clusterLie(), badRoot, nil)},
		{"the cluster's record, by one of its nodes", "forged", with(clusterLie(), *seeded("key of east/n1"), eastern)},
		{"garbage", "unreadable", lie().Sealed([]byte{0xff, 1, 2})},
	} {
		before := dw.Refused()["record_"+c.counted]
		mallory.inject(c.e)
		eventually(t, c.name+" is refused", func() bool { return dw.Refused()["record_"+c.counted] > before })
		if !honest() || dw.said(origin("east", "n666")) >= 0 || len(dw.State().Records.Get(origin("east", "")).Content.Nodes) > 0 {
			t.Errorf("%s: west believes it: %+v", c.name, dw.State().Records)
		}
	}
	de.Publish(placed(east.Self, 1, "5"))
	eventually(t, "the victim is still believed", func() bool { return dw.said(east.Self) == 5 })
	if !dw.hasProblem("cluster east", "it is not signed") || !dw.hasProblem("cluster east", "did not sign it") {
		t.Errorf("no Problem: %v", dw.Problems())
	}
}

// TestRelaysNeedNoTrust: a daemon between two others passes records on with their seals.
func TestRelaysNeedNoTrust(t *testing.T) {
	pins := pinned("west", "east")
	west := signing(config(origin("west", "n1")), pins)
	west.StateDir = t.TempDir()
	east := signing(config(origin("east", "n1"), west.Bind), pins)
	dw, de := start(t, west), start(t, east)
	de.Publish(placed(east.Self, 1, "2"))
	eventually(t, "west knows east", func() bool { return dw.said(east.Self) == 2 })
	de.stop()
	late := start(t, signing(config(origin("west", "n2"), west.Bind), pins))
	eventually(t, "a newcomer believes what west passes on", func() bool { return late.said(east.Self) == 2 })
	dw.stop()
	dw = start(t, west)
	if dw.said(east.Self) != 2 {
		t.Error("after a restart, west does not believe what it saved")
	}
	if ok, waiting := dw.Synced(); !ok {
		t.Errorf("what was saved is not complete: waiting for %s", waiting)
	}
}

// TestRepin: a cluster that is not pinned any more says nothing, and is heard again when it is pinned
// again. What a daemon saved before it had pins is unknown, not believed.
func TestRepin(t *testing.T) {
	t.Parallel()
	both, alone := pinned("west", "east"), pinned("west")
	west := config(origin("west", "n1"))
	west.StateDir = t.TempDir()
	east := signing(config(origin("east", "n1"), west.Bind), both)
	dw, de := start(t, west), start(t, east)
	de.Publish(placed(east.Self, 1, "2"))
	eventually(t, "who has no pins believes everybody", func() bool { return dw.said(east.Self) == 2 })
	dw.stop()

	de.stop()
	unsigned := config(origin("east", "n1"), west.Bind)
	unsigned.Bind = east.Bind
	de = start(t, unsigned)
	de.Publish(placed(east.Self, 1, "3"))
	dw = start(t, west)
	eventually(t, "it believes what is not signed", func() bool { return dw.said(east.Self) == 3 })
	dw.stop()
	dw = start(t, signing(west, both))
	if dw.said(east.Self) >= 0 {
		t.Error("it believes what it saved without proof")
	}
	de.stop()
	de = start(t, east)
	de.Publish(placed(east.Self, 1, "4"))
	eventually(t, "with proof it is believed", func() bool { return dw.said(east.Self) == 4 })

	dw.Repin(alone)
	if dw.said(east.Self) >= 0 {
		t.Error("a cluster that is not pinned any more is believed")
	}
	eventually(t, "and it says so", func() bool { return dw.hasProblem("cluster east", "not pinned") })
	dw.Repin(both)
	eventually(t, "pinned again, it is believed", func() bool { return dw.said(east.Self) == 4 })
}

// TestRepinOwn: what other clusters leave out of a node's record is told by the pins that are in force.
func TestRepinOwn(t *testing.T) {
	narrow, wide := pinned("west", "east"), pinned("west", "east")
	own := narrow["west"]
	own.Pods = []netip.Prefix{netip.MustParsePrefix("10.7.0.0/16")}
	narrow["west"] = own
	west := signing(config(origin("west", "n1")), narrow)
	d := start(t, west)
	d.Publish(placed(west.Self, 0, "1"))
	leftOut := func() bool { return d.hasProblem("node west/n1", "left out by other clusters") }
	if !leftOut() {
		t.Errorf("outside its own pin, and no Problem says so: %v", d.Problems())
	}
	d.Repin(wide)
	if leftOut() {
		t.Errorf("with a pin that has it: %v", d.Problems())
	}
	d.Repin(narrow)
	if !leftOut() {
		t.Errorf("and back: %v", d.Problems())
	}
	// As install and the leader pin their own cluster: what others pin of its machines is not
	// known.
	open := pinned("west", "east")
	own = open["west"]
	own.Nodes = nil
	open["west"] = own
	d.Repin(open)
	if leftOut() {
		t.Errorf("with an own pin without ranges of nodes: %v", d.Problems())
	}
}

// TestLeaderSignsAgain: a leader that has a root signs the cluster's record even if it says what an
// unsigned one says already, or one that the former root signed.
func TestLeaderSignsAgain(t *testing.T) {
	t.Parallel()
	serve := clustermesh.Content{Nodes: []clustermesh.NodeName{"n1"}, Exports: []clustermesh.Export{{
		Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"}, Type: clustermesh.Headless, Created: 1,
	}}}
	leader := config(origin("east", "n1"))
	leader.StateDir = t.TempDir()
	lead := func(c Config) *daemon {
		d := start(t, c)
		eventually(t, "it leads", func() bool { return d.Leader() })
		d.PublishCluster(serve)
		return d
	}
	d := lead(leader)
	if n := len(d.State().Records.Get(origin("east", "")).Content.Exports); n != 1 {
		t.Fatalf("%d exports", n)
	}
	d.stop()
	signed := signing(leader, pinned("west", "east"))
	d = lead(signed)
	west := start(t, signing(config(origin("west", "n1"), leader.Bind), pinned("west", "east")))
	believed := func() bool { return len(west.State().Records.Get(origin("east", "")).Content.Exports) == 1 }
	eventually(t, "what was unsigned is signed", believed)
	d.stop()

	both, after := pinned("west", "east"), pinned("west", "east")
	pin := both["east"]
	pin.Roots = append(pin.Roots, root("east again").Public())
	both["east"] = pin
	pin.Roots = pin.Roots[1:]
	after["east"] = pin
	west.Repin(both)
	rotated := signing(leader, both)
	rotated.Authority.Root = root("east again")
	lead(rotated)
	eventually(t, "the new root signs", func() bool {
		west.Repin(after)
		defer west.Repin(both)
		return believed()
	})
}

// TestNodesAreBounded: a cluster cannot make others hold more nodes than its pin allows. Those that are
// known go on.
func TestNodesAreBounded(t *testing.T) {
	pins := pinned("west", "east")
	pin := pins["east"]
	pin.Quota.Nodes = 2
	pins["east"] = pin
	west := signing(config(origin("west", "n1")), pins)
	dw := start(t, west)
	east := signing(config(origin("east", "n1"), west.Bind), nil)
	de := start(t, east)
	de.Publish(placed(east.Self, 1, "1"))
	key, now := *seeded("another key"), time.Now()
	for _, name := range []string{"n2", "n3", "n4"} {
		o := origin("east", name)
		s, err := authority.Statement{
			Cluster: o.Cluster, Node: o.Node, Key: key.Public(), NotBefore: now.Unix(), NotAfter: now.Add(time.Hour).Unix(),
		}.Sign(*root("east"))
		if err != nil {
			t.Fatal(err)
		}
		e := forged(t, o, clustermesh.Content{Node: &clustermesh.Node{Name: o.Node}})
		raw, err := e.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		de.inject(e.Sealed(authority.Seal(key, raw, s)))
	}
	eventually(t, "west refuses what is too much", func() bool {
		return dw.Refused()["record_crowd"] > 0 && dw.hasProblem("cluster east", "quota", "higher quota.nodes")
	})
	count := func() (n int) {
		for o := range dw.State().Records.All() {
			if o.Cluster == "east" && o.Node != "" {
				n++
			}
		}
		return n
	}
	eventually(t, "west holds two", func() bool { return count() == 2 })
	_, first := dw.State().Records.Lookup(east.Self)
	de.Publish(placed(east.Self, 1, "7"))
	if first {
		eventually(t, "a known node goes on", func() bool { return dw.said(east.Self) == 7 })
	}
	if count() != 2 {
		t.Errorf("west holds %d nodes of east", count())
	}
}

// TestAcceptChanges: what a Namespace accepts counts at once, for what is held too, and comes back whole.
func TestAcceptChanges(t *testing.T) {
	west := config(origin("west", "n1"))
	dw := start(t, west)
	east := config(origin("east", "n1"), west.Bind)
	de := start(t, east)
	de.Publish(placed(east.Self, 1, "1"))
	has := func() int { return len(dw.State().Records.Get(east.Self).Content.Endpoints) }
	eventually(t, "west has the endpoint", func() bool { return has() == 1 })
	ns := dw.State().Records.Get(east.Self).Content.Endpoints[0].Service.Namespace
	for _, step := range []struct {
		accept clustermesh.Accept
		local  bool
		want   int
	}{
		{clustermesh.Accept{ns: nil}, false, 0}, {clustermesh.Accept{ns: {"east"}}, false, 1}, {clustermesh.Accept{ns: {"north"}}, false, 0},
		{nil, false, 1}, {nil, true, 0}, {clustermesh.Accept{ns: {"east"}}, true, 1}, {nil, false, 1},
	} {
		if dw.Accept(step.accept, clustermesh.LocalNamespaces{Marked: map[string]bool{ns: step.local}}); has() != step.want {
			t.Errorf("%v, local %v: %d endpoints", step.accept, step.local, has())
		}
	}
}

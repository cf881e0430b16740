package trust

import (
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// holding has the record of one cluster.
type holding struct {
	none
	record clustermesh.Record
}

func (s holding) Peek(o clustermesh.Origin) *clustermesh.Record {
	if o != s.record.Origin {
		return nil
	}
	return &s.record
}

// TestWithdrawnTakesNothing: what a node keeps under a withdrawn statement is free for others,
// whether the node has shown that statement or not. Signers go above what is withdrawn, also if
// another one's clock is ahead.
func TestWithdrawnTakesNothing(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	liar, late := node("west", "n2"), node("west", "n3")
	serial := uint64(now.Add(5 * time.Minute).UnixNano())
	g := storeOf(self)
	for _, o := range []clustermesh.Origin{liar, late} {
		s := authority.Statement{Cluster: "west", Node: o.Node, Serial: serial}
		g.verified.set(o, verification{Signed: Signed{Statement: s}})
		if s.Serial += 3; o == late {
			g.issued[o] = s
		}
	}
	n := placed(self, 0, "1").Node
	g.update(t, n, now)
	before := g.current.Serial
	entry := func(o clustermesh.Origin, below uint64, in time.Duration) clustermesh.Withdrawal {
		return clustermesh.Withdrawal{Node: o.Node, Below: below, From: now.Add(in).Unix()}
	}
	g.records = holding{record: clustermesh.Record{Origin: node("west", ""), Content: clustermesh.Content{Withdrawn: []clustermesh.Withdrawal{
		entry(self, serial+1, time.Hour), entry(liar, serial+1, 0), entry(late, serial+2, 0), entry(late, serial+4, time.Minute),
	}}}}
	if s := g.inForce(liar, now); s.Node != "" {
		t.Errorf("what is withdrawn counts: %+v", s)
	}
	if s := g.inForce(late, now); s.Serial != serial+3 {
		t.Errorf("what was signed since does not count: %+v", s)
	}
	if s := g.inForce(late, now.Add(time.Minute)); s.Node != "" {
		t.Errorf("what was signed, and then withdrawn, counts: %+v", s)
	}
	if got := g.latest(late, now); got != serial+3 {
		t.Errorf("the next statement would have a serial above %d, and what is withdrawn goes to %d", got, serial+3)
	}
	if !g.isRecalled(now) || g.isVoid(g.current.Statement, now) || !g.isVoid(g.current.Statement, now.Add(time.Hour)) {
		t.Error("what will be withdrawn of this node is not known, or counts no more already")
	}
	if g.update(t, n, now); g.current.Serial != serial+1 || g.isRecalled(now) {
		t.Errorf("it goes on with serial %d after %d", g.current.Serial, before)
	}
}

// TestReview: a leader withdraws none by what it does not know, or what no signer could state better.
func TestReview(t *testing.T) {
	self, o, now := node("west", "n1"), node("west", "n2"), time.Now()
	shown := authority.Statement{
		Cluster: "west", Node: "n2", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7")}, Locality: clustermesh.Locality{Zone: "a"},
	}.Signed(now.Add(-2 * time.Hour))
	other := []netip.Addr{netip.MustParseAddr("192.0.2.8")}
	for name, c := range map[string]struct {
		change func(*Store)
		want   int
	}{
		"an address that its Node lacks":    {func(*Store) {}, 1},
		"an address that its Node has":      {func(g *Store) { g.objects.Nodes[0].Addresses = shown.Addresses }, 0},
		"a zone that its Node had":          {func(g *Store) { g.objects.Nodes[0] = authority.Holder{Name: "n2", Addresses: shown.Addresses} }, 0},
		"objects are unknown":               {func(g *Store) { g.objects = nil }, 0},
		"objects tell none":                 {func(g *Store) { g.checks = false }, 0},
		"its Node is unknown":               {func(g *Store) { g.objects.Nodes[0].Name = "n3" }, 0},
		"its Node has no address yet":       {func(g *Store) { g.objects.Nodes[0].Addresses = nil }, 0},
		"its record is not here":            {func(g *Store) { g.records = none{} }, 0},
		"everybody is believed":             {func(g *Store) { g.pins = nil }, 0},
		"it does not have the root":         {func(g *Store) { g.cfg.Root = nil }, 0},
		"it is withdrawn already":           {func(g *Store) { g.withdrawals = []clustermesh.Withdrawal{{Node: "n2", Below: shown.Serial + 1}} }, 1},
		"another leader has withdrawn more": {func(g *Store) { g.withdrawals = []clustermesh.Withdrawal{{Node: "n0", Below: 1}} }, 2},
	} {
		g := storeOf(self)
		g.checks, g.records = true, heldBy{o: o}
		g.objects = &authority.Objects{All: true, Nodes: []authority.Holder{{Name: "n2", Addresses: other}}}
		g.verified.set(o, verification{Signed: Signed{Statement: shown, Bytes: []byte("signed")}})
		c.change(g)
		if g.Review(false, now); len(g.withdrawals) != c.want {
			t.Errorf("%s: %v is withdrawn", name, g.withdrawals)
		}
	}
}

// TestWithdrawnIsBounded: nodes that come and go do not make the cluster's record grow without end.
func TestWithdrawnIsBounded(t *testing.T) {
	g := storeOf(node("west", "n1"))
	pin := g.pins["west"]
	pin.Quota.Nodes = 2
	g.pins["west"] = pin
	g.objects = &authority.Objects{Nodes: []authority.Holder{{Name: "n2"}, {Name: "n4"}}}
	var list []clustermesh.Withdrawal
	for _, n := range []clustermesh.NodeName{"n1", "n2", "n3", "n4"} {
		list = append(list, clustermesh.Withdrawal{Node: n, Below: 1})
	}
	if got := g.bounded(list); len(got) != 4 {
		t.Errorf("of four, %v are left", got)
	}
	if got := g.bounded(append(list, clustermesh.Withdrawal{Node: "n5", Below: 1})); len(got) != 2 || got[0].Node != "n2" || got[1].Node != "n4" {
		t.Errorf("of five, %v are left", got)
	}
}

// TestElected: a new leader withdraws at once what the one before it did.
func TestElected(t *testing.T) {
	s := storeOf(node("west", "n1"))
	list := []clustermesh.Withdrawal{{Node: "n2", Below: 3}}
	s.SetRecords(holding{record: clustermesh.Record{Origin: node("west", ""), Content: clustermesh.Content{Withdrawn: list}}})
	if s.Elected(); len(s.Withdrawals()) != 1 || s.Withdrawals()[0] != list[0] {
		t.Errorf("a new leader withdraws %v", s.Withdrawals())
	}
	if s.Resign(); len(s.Withdrawals()) > 0 {
		t.Errorf("who does not lead withdraws %v", s.Withdrawals())
	}
}

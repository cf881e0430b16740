package trust

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// TestAsks: a machine without the root asks for what it lacks, and not more often than that takes.
func TestAsks(t *testing.T) {
	self, now := node("west", "n1"), time.Now().Truncate(time.Second)
	pins := pinned("west")
	g := New(following(self, pins), self)
	n := placed(self, 0, "1").Node
	if g.Requests(now) {
		t.Error("it asks before it has anything to say")
	}
	if g.update(t, n, now) || !g.Requests(now) {
		t.Error("it does not ask for its first statement")
	}
	get := func(says authority.Statement) {
		g.requested = g.wanted
		g.current = Signed{says, []byte("signed"), now}
	}
	full := g.wanted
	full.NotBefore, full.NotAfter, full.Root = now.Unix(), now.Add(authority.Validity).Unix(), root("west").Public()
	if get(full); g.Requests(now.Add(authority.Renewal)) || !g.Requests(now.Add(authority.Renewal+time.Second)) {
		t.Error("it does not renew its statement after the renewal time, and only then")
	}
	for _, by := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		other := full // the clock of the signer, or this machine's, is wrong
		other.NotBefore, other.NotAfter = now.Add(by).Unix(), now.Add(by+authority.Validity).Unix()
		again := Lacking
		if by > 0 {
			again = Rotating // others do not believe it
		}
		if get(other); g.Requests(now.Add(again)) || !g.Requests(now.Add(again+time.Second)) {
			t.Errorf("signed %s from now, it is not asked for again after a while, and only then", by)
		}
		if get(full); !g.Requests(now.Add(by)) {
			t.Errorf("it is not asked for again at once when this machine's clock is set by %s", by)
		}
	}
	less := full
	less.Prefixes = nil
	if get(less); g.Requests(now.Add(Lacking)) || !g.Requests(now.Add(Lacking+time.Second)) {
		t.Error("a statement that lacks something is not asked for again after a while, and only then")
	}
	both := pinned("west")
	pin := both["west"]
	pin.Roots = append(pin.Roots, root("west again").Public())
	both["west"] = pin
	g.Repin(both)
	if !g.Requests(now) {
		t.Error("it does not ask at once after the pins changed")
	}
	if get(full); g.Requests(now.Add(Rotating)) || !g.Requests(now.Add(Rotating+time.Second)) {
		t.Error("while the former root signed, it does not ask again after a while, and only then")
	}
	full.Root = root("west again").Public()
	if get(full); g.Requests(now.Add(authority.Renewal)) {
		t.Error("the new root signed, and it asks again")
	}
	moved := *n
	moved.Addresses = nil
	if g.update(t, &moved, now); !g.Requests(now) {
		t.Error("what it publishes changed, and it requests nothing")
	}
}

// TestStatementsAreRenewed drives the clock.
func TestStatementsAreRenewed(t *testing.T) {
	self, now := node("west", "n1"), time.Now().Truncate(time.Second)
	g := New(signing(self, pinned("west")), self)
	n := placed(self, 0, "1").Node
	if g.due(now) || !g.update(t, n, now) || g.due(now) {
		t.Fatal("a statement is not signed at first, or is due at once")
	}
	first := g.current
	if g.update(t, n, now.Add(authority.Renewal)); !slices.Equal(g.current.Bytes, first.Bytes) || g.due(now.Add(authority.Renewal)) {
		t.Error("it is signed again although nothing changed")
	}
	later := now.Add(authority.Renewal + time.Minute)
	if !g.due(later) {
		t.Error("it is not due after its renewal time")
	}
	if g.update(t, n, later); g.current.Serial <= first.Serial || g.current.NotAfter <= first.NotAfter {
		t.Errorf("renewed: %+v, first %+v", g.current.Statement, first.Statement)
	}
	moved := *n
	moved.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.77")}
	if g.update(t, &moved, later); g.current.Addresses[0] != moved.Addresses[0] {
		t.Errorf("the node has another address, and the statement says %v", g.current.Addresses)
	}
	back := now.Add(-time.Hour)
	if !g.due(back) {
		t.Error("the clock was set back, and the statement stays one from the future")
	}
}

// TestLateStatements: who is heard, but not renewed, is named once for its cluster.
func TestLateStatements(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	g := New(nil, self)
	var alive clustermesh.Draft[bool]
	for _, name := range []string{"n1", "n2", "n3"} {
		o := node("east", name)
		s := authority.Statement{Cluster: o.Cluster, Node: o.Node, NotBefore: now.Unix(), NotAfter: now.Add(authority.Validity).Unix()}
		g.verified.set(o, verification{Signed: Signed{Statement: s}})
		alive.Set(o, true)
	}
	if ps := g.late(alive.Share(), now.Add(time.Hour)); len(ps) > 0 {
		t.Errorf("fresh statements: %v", ps)
	}
	for after, says := range map[time.Duration]string{13 * time.Hour: "node n1 was not renewed, and ends in 11h0m0s; 2 more", 26 * time.Hour: "ended 2h0m0s ago, and what the node published stays in force"} {
		if ps := g.late(alive.Share(), now.Add(after)); len(ps) != 1 || !strings.Contains(ps[0].Message, says) {
			t.Errorf("after %s: %v, want one with %q", after, ps, says)
		}
	}
	if ps := g.late(clustermesh.ByOrigin[bool]{}, now.Add(26*time.Hour)); len(ps) > 0 {
		t.Errorf("nodes that are down: %v", ps)
	}
}

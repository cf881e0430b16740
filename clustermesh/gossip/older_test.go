package gossip

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// stating is a guard of west, a node of east with its key, and the times of the node's statements.
type stating struct {
	*testing.T
	*guard
	o       clustermesh.Origin
	key     authority.PrivateKey
	now     time.Time
	version uint64
}

func newStating(t *testing.T, pins authority.Pins) *stating {
	self, o := node("west", "n1"), node("east", "n1")
	g := newGuard(&Authority{Node: authority.PrivateKey{1}, Pins: pins}, self, slog.New(slog.DiscardHandler))
	return &stating{T: t, guard: g, o: o, key: authority.PrivateKey{2}, now: time.Now()}
}

// signs returns a signed statement of a number of prefixes.
func (s *stating) signs(by *authority.PrivateKey, prefixes byte, at time.Time) []byte {
	s.Helper()
	want := authority.Statement{Cluster: s.o.Cluster, Node: s.o.Node, Key: s.key.Public()}
	for n := range prefixes {
		want.Prefixes = append(want.Prefixes, placed(s.o, 1+n, "").Node.Prefixes...)
	}
	signed, err := want.Signed(at).Sign(*by)
	if err != nil {
		s.Fatal(err)
	}
	return signed
}

// says returns the next record of the node, under a statement.
func (s *stating) says(signed []byte) replica.Entry {
	s.Helper()
	s.version++
	e, err := replica.NewEntry(clustermesh.Record{Origin: s.o, Stamp: clustermesh.Stamp{Epoch: 1, Version: s.version}, Content: placed(s.o, 1, "1")})
	if err != nil {
		s.Fatal(err)
	}
	raw, err := e.Bytes()
	if err != nil {
		s.Fatal(err)
	}
	return e.Sealed(authority.Seal(s.key, raw, signed))
}

// TestOlderStatements: a node that has its key cannot bring back what its cluster stated of it before.
// What is held stays; and nobody is locked out whose statement says the same, is of another root, or
// follows one from a clock that was wrong.
func TestOlderStatements(t *testing.T) {
	pins := pinned("west", "east")
	pin := pins["east"]
	pin.Roots = append(pin.Roots, root("east again").Public())
	pins["east"] = pin
	s := newStating(t, pins)
	by, first := root("east"), root("east again")
	wide, narrow := s.signs(by, 2, s.now.Add(-2*time.Hour)), s.signs(by, 1, s.now.Add(-time.Hour))
	admitted := func(what string, signed []byte) {
		t.Helper()
		if _, p, ok := s.judge(node("east", "n2"), s.says(signed), s.now); !ok {
			t.Errorf("%s is refused: %v", what, p)
		}
	}
	refused := func(what string, signed []byte) {
		t.Helper()
		before := s.counts["older"]
		_, p, ok := s.judge(node("east", "n2"), s.says(signed), s.now)
		if ok || p.Code != problem.StatementOlder || p.Object != "cluster east" || !strings.Contains(p.Message, "the record of east/n1, received from east/n2") || s.counts["older"] != before+1 {
			t.Errorf("%s is admitted: %v, %v", what, ok, p)
		}
	}
	admitted("the first statement", wide)
	held := s.says(wide)
	admitted("a later one", narrow)
	refused("the first one, again", wide)
	admitted("what is in force", narrow)
	admitted("the same, signed before", s.signs(by, 1, s.now.Add(-3*time.Hour)))
	refused("the first one, once more", wide)
	admitted("and the later one", narrow)
	admitted("a wide one that is new", s.signs(by, 2, s.now))
	admitted("another root's", s.signs(first, 1, s.now.Add(-5*time.Hour)))
	admitted("and back", narrow)

	// Pins change, or namespaces accept more: what is held is judged again.
	s.repin(pins)
	if _, p, ok := s.judge(replica.Peer{}, s.says(narrow), s.now); !ok {
		t.Errorf("what is held is refused: %v", p)
	}
	refused("the first one, after a restart", wide)
	if _, p, ok := s.judge(replica.Peer{}, held, s.now); !ok {
		t.Errorf("what is held is refused, because something later was refused for another reason: %v", p)
	}
	admitted("the later one, over what is held", narrow)

	future := s.signs(by, 2, s.now.Add(year))
	if _, p, ok := s.judge(replica.Peer{}, s.says(future), s.now.Add(year)); !ok {
		t.Errorf("what is held is refused: %v", p)
	}
	admitted("a statement after one from the future", narrow)
}

// TestOwnersAreNotLockedOut: whoever signs gives a serial above all that it knows of the node: also if
// another signer's clock is ahead, if this machine's was set back before a restart, and if another daemon has
// this node's name.
func TestOwnersAreNotLockedOut(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	ahead := authority.Statement{
		Cluster: self.Cluster, Node: self.Node, Key: authority.PrivateKey{3}.Public(), Root: root("west").Public(),
	}.Signed(now.Add(5 * time.Minute))
	n := placed(self, 0, "1").Node
	guarded := func() *guard {
		return newGuard(signing(config(self), pinned("west")).Authority, self, slog.New(slog.DiscardHandler))
	}
	g := guarded()
	g.state(n, now)
	g.proven[self] = proof{latest: ahead}
	if g.state(n, now); g.stated.Older(ahead, now) || g.stated.Serial != ahead.Serial+1 {
		t.Errorf("it goes on with serial %d, and others know %d", g.stated.Serial, ahead.Serial)
	}
	serial := g.stated.Serial
	if g.state(n, now); g.stated.Serial != serial {
		t.Error("it is signed again and again")
	}

	signed, err := ahead.Sign(*root("west"))
	if err != nil {
		t.Fatal(err)
	}
	e := forged(t, self, placed(self, 0, "1"))
	raw, err := e.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	g = guarded()
	g.restoreSealed(e.Sealed(authority.Seal(authority.PrivateKey{3}, raw, signed)))
	if g.state(n, now); g.stated.Serial != ahead.Serial+1 {
		t.Errorf("after a restart, it goes on with serial %d, and others know %d", g.stated.Serial, ahead.Serial)
	}

	f := newGuard(following(config(self), pinned("west")).Authority, self, slog.New(slog.DiscardHandler))
	f.state(n, now)
	f.stated, f.asked = statement{f.want.Signed(now), []byte("signed"), now}, f.want
	f.stated.Root = root("west").Public()
	if f.asks(now.Add(time.Minute)) {
		t.Error("it asks without need")
	}
	if f.proven[self] = (proof{latest: ahead}); f.asks(now) || !f.asks(now.Add(rotating+time.Second)) {
		t.Error("while its statement is void, it does not ask again after a while, and only then")
	}
}

// TestSignersAgreeOnSerials: a signer goes above what the node that asks shows of another signer, and above
// what it knows of that node itself.
func TestSignersAgreeOnSerials(t *testing.T) {
	asker := node("west", "n2")
	c := signing(config(node("west", "n1")), pinned("west"))
	g, err := New(attesting(c, asker, new(atomic.Int64)))
	if err != nil {
		t.Fatal(err)
	}
	key, channel := *seeded("key of " + asker.String()), []byte("channel")
	want := authority.Statement{Cluster: asker.Cluster, Node: asker.Node, Key: key.Public()}
	request, err := authority.Request{Want: want}.Sign(key, channel)
	if err != nil {
		t.Fatal(err)
	}
	serial := func(shown []byte) uint64 {
		t.Helper()
		a, _, err := signer{g}.certify(t.Context(), stream.Peer{Statement: shown}, channel, request)
		if err != nil {
			t.Fatal(err)
		}
		s, err := authority.OpenStatement(a.Statement, g.guard.signers)
		if err != nil {
			t.Fatal(err)
		}
		return s.Serial
	}
	other := want.Signed(time.Now().Add(time.Hour))
	shown, err := other.Sign(*root("west"))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := want.Signed(time.Now().Add(2 * time.Hour)).Sign(*root("mallory"))
	if err != nil {
		t.Fatal(err)
	}
	if got := serial(nil); got >= other.Serial {
		t.Errorf("serial %d, without need", got)
	}
	if got := serial(shown); got != other.Serial+1 {
		t.Errorf("serial %d, after one of %d", got, other.Serial)
	}
	if got := serial(forged); got >= other.Serial {
		t.Errorf("serial %d, because of a statement of another root", got)
	}
	g.guard.proven[asker] = proof{latest: other}
	if got := serial(nil); got != other.Serial+1 {
		t.Errorf("serial %d, and it knows one of %d", got, other.Serial)
	}
}

// heldBy says that the records of one node are held.
type heldBy struct {
	nothing
	o clustermesh.Origin
}

func (h heldBy) Record(o clustermesh.Origin) (clustermesh.Record, bool) {
	return clustermesh.Record{}, o == h.o
}

// TestStatementsAreNotForgotten: a cluster that signs for ever more nodes makes room for the statements of
// others' nodes neither in memory nor in force.
func TestStatementsAreNotForgotten(t *testing.T) {
	s := newStating(t, pinned("west", "east"))
	by := root("east")
	wide, narrow := s.signs(by, 2, s.now.Add(-2*time.Hour)), s.signs(by, 1, s.now.Add(-time.Hour))
	s.held = heldBy{o: s.o}
	if _, p, ok := s.judge(node("east", "n2"), s.says(narrow), s.now); !ok {
		t.Fatal(p)
	}
	for n := range maxProven {
		s.proven[node("mallory", fmt.Sprint("n", n))] = proof{}
	}
	other := *s
	other.o = node("east", "n3")
	if _, p, ok := s.judge(node("east", "n2"), other.says(other.signs(by, 1, s.now)), s.now); !ok {
		t.Fatal(p)
	}
	if len(s.proven) > maxProven {
		t.Errorf("%d are remembered", len(s.proven))
	}
	if _, _, ok := s.judge(node("east", "n2"), s.says(wide), s.now); ok {
		t.Error("an older statement is admitted")
	}
}

// TestBetterStatements: a machine keeps the statement in force if others would not believe the one that a
// signer with a wrong clock gives it.
func TestBetterStatements(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	g := newGuard(following(config(self), pinned("west")).Authority, self, slog.New(slog.DiscardHandler))
	g.state(placed(self, 0, "1").Node, now)
	less := g.want
	less.Prefixes = nil
	for _, c := range []struct {
		name      string
		have, get authority.Statement
		want      error
	}{
		{"the first one", authority.Statement{}, g.want.Signed(now.Add(year)), nil},
		{"a renewal", g.want.Signed(now.Add(-time.Hour)), g.want.Signed(now), nil},
		{"what says less", g.want.Signed(now.Add(-time.Hour)), less.Signed(now), nil},
		{"from the future", g.want.Signed(now.Add(-time.Hour)), g.want.Signed(now.Add(time.Hour)), errSignerAhead},
		{"after one from the future", g.want.Signed(now.Add(time.Hour)), g.want.Signed(now.Add(2 * time.Hour)), nil},
		{"after one that has ended", g.want.Signed(now.Add(-year)), g.want.Signed(now.Add(time.Hour)), nil},
		{"older, and the same", g.want.Signed(now.Add(-time.Hour)), g.want.Signed(now.Add(-2 * time.Hour)), nil},
		{"older, and another", g.want.Signed(now.Add(-time.Hour)), less.Signed(now.Add(-2 * time.Hour)), errSignerBehind},
	} {
		if g.stated = (statement{Statement: c.have}); c.have.Node != "" {
			g.stated.signed = []byte("signed")
		}
		if err := g.better(c.get, now); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestSignerAhead: the clock of the machine that signs is ahead. Machines that had a statement go on, say so,
// and have the new one soon after that clock is right.
func TestSignerAhead(t *testing.T) {
	pins := pinned("west", "east")
	first, second := node("west", "n1"), node("west", "n2")
	var ahead atomic.Int64
	c := signing(config(second), pins)
	c.Attest = func(context.Context, authority.Request) error { return nil }
	c.clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	keeper := start(t, c)
	keeper.tell(0, 2)
	follower := start(t, following(config(first, keeper.cfg.Bind), pins))
	content := placed(first, 0, "1")
	content.Node.Follower = true
	follower.Publish(content)
	east := start(t, signing(config(node("east", "n1"), keeper.cfg.Bind), pins))
	eventually(t, "it is believed", func() bool { return east.said(first) == 1 })

	const says = "behind that of the machine that signs for it"
	ahead.Store(int64(year))
	content = placed(first, 0, "3")
	content.Node.Follower = true
	content.Node.Prefixes = append(content.Node.Prefixes, netip.MustParsePrefix("10.0.77.0/24"))
	follower.Publish(content)
	eventually(t, "it says that a clock is wrong", func() bool { return follower.hasProblem(says) })
	content.Endpoints = placed(first, 0, "4").Endpoints
	follower.Publish(content)
	eventually(t, "what it says is believed", func() bool { return east.said(first) == 4 })
	follower.reportStatement(fmt.Errorf("answers: %w", errSignerAhead), time.Time{})
	if follower.hasProblem("is not renewed") {
		t.Errorf("it says it twice: %v", follower.Problems())
	}
	ahead.Store(0)
	eventually(t, "what is new is stated", func() bool { return len(east.Trust().Statements[first].Prefixes) == 2 })
	eventually(t, "no clock is wrong", func() bool { return !follower.hasProblem(says) })
}

// TestEndedStatementsCount: while a root is away, its nodes go on, and what they say is news.
func TestEndedStatementsCount(t *testing.T) {
	s := newStating(t, pinned("west", "east"))
	ended := s.signs(root("east"), 1, s.now.Add(-2*authority.Validity))
	for range 2 {
		if _, p, ok := s.judge(node("east", "n2"), s.says(ended), s.now); !ok {
			t.Errorf("a record under a statement that has ended is refused: %v", p)
		}
	}
}

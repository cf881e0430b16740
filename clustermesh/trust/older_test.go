package trust

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// stating is the store of west, a node of east with its key, and the times of the node's statements.
type stating struct {
	*testing.T
	*Store
	o       clustermesh.Origin
	key     authority.PrivateKey
	now     time.Time
	version uint64
}

func newStating(t *testing.T, pins authority.Pins) *stating {
	self, o := node("west", "n1"), node("east", "n1")
	g := New(&Config{Node: authority.PrivateKey{1}, Pins: pins}, self)
	return &stating{T: t, Store: g, o: o, key: authority.PrivateKey{2}, now: time.Now()}
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
// What is held stays; and no node is locked out whose statement has the same, is of another root, or
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
		if _, p, ok := s.Admit(node("east", "n2"), s.says(signed), s.now); !ok {
			t.Errorf("%s is refused: %v", what, p)
		}
	}
	refused := func(what string, signed []byte) {
		t.Helper()
		before := s.refused["older"]
		_, p, ok := s.Admit(node("east", "n2"), s.says(signed), s.now)
		if ok || p.Code != problem.StatementOlder || p.Object != "cluster east" || !strings.Contains(p.Message, "the record of east/n1, received from east/n2") || s.refused["older"] != before+1 {
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
	s.Repin(pins)
	if _, p, ok := s.Admit(replica.Peer{}, s.says(narrow), s.now); !ok {
		t.Errorf("what is held is refused: %v", p)
	}
	refused("the first one, after a restart", wide)
	if _, p, ok := s.Admit(replica.Peer{}, held, s.now); !ok {
		t.Errorf("what is held is refused, because something later was refused for another reason: %v", p)
	}
	admitted("the later one, over what is held", narrow)

	future := s.signs(by, 2, s.now.Add(year))
	if _, p, ok := s.Admit(replica.Peer{}, s.says(future), s.now.Add(year)); !ok {
		t.Errorf("what is held is refused: %v", p)
	}
	admitted("a statement after one from the future", narrow)
}

// TestOwnersAreNotLockedOut: a signer gives a serial above all that it knows of the node: also if
// another signer's clock is ahead, if this machine's was set back before a restart, and if another daemon has
// this node's name.
func TestOwnersAreNotLockedOut(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	ahead := authority.Statement{
		Cluster: self.Cluster, Node: self.Node, Key: authority.PrivateKey{3}.Public(), Root: root("west").Public(),
	}.Signed(now.Add(5 * time.Minute))
	n := placed(self, 0, "1").Node
	stored := func() *Store {
		return New(signing(self, pinned("west")), self)
	}
	g := stored()
	g.update(t, n, now)
	g.verified.set(self, verification{latest: ahead})
	if g.update(t, n, now); g.current.Older(ahead, now) || g.current.Serial != ahead.Serial+1 {
		t.Errorf("it goes on with serial %d, and others know %d", g.current.Serial, ahead.Serial)
	}
	serial := g.current.Serial
	if g.update(t, n, now); g.current.Serial != serial {
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
	g = stored()
	g.RestoreSealed(e.Sealed(authority.Seal(authority.PrivateKey{3}, raw, signed)))
	if g.update(t, n, now); g.current.Serial != ahead.Serial+1 {
		t.Errorf("after a restart, it goes on with serial %d, and others know %d", g.current.Serial, ahead.Serial)
	}

	f := New(following(self, pinned("west")), self)
	f.update(t, n, now)
	f.current, f.requested = Signed{f.wanted.Signed(now), []byte("signed"), now}, f.wanted
	f.current.Root = root("west").Public()
	if f.Requests(now.Add(time.Minute)) {
		t.Error("it asks without need")
	}
	if f.verified.set(self, verification{latest: ahead}); f.Requests(now) || !f.Requests(now.Add(Rotating+time.Second)) {
		t.Error("while its statement is void, it does not ask again after a while, and only then")
	}
}

// heldBy says that the records of one node are held.
type heldBy struct {
	none
	o clustermesh.Origin
}

func (h heldBy) Peek(o clustermesh.Origin) *clustermesh.Record {
	if o != h.o {
		return nil
	}
	return &clustermesh.Record{}
}

// TestStatementsAreNotForgotten: a cluster that signs for more and more nodes makes room for the
// statements of others' nodes neither in memory nor in force.
func TestStatementsAreNotForgotten(t *testing.T) {
	s := newStating(t, pinned("west", "east"))
	by := root("east")
	wide, narrow := s.signs(by, 2, s.now.Add(-2*time.Hour)), s.signs(by, 1, s.now.Add(-time.Hour))
	s.records = heldBy{o: s.o}
	if _, p, ok := s.Admit(node("east", "n2"), s.says(narrow), s.now); !ok {
		t.Fatal(p)
	}
	for n := range maxVerified {
		s.verified.set(node("mallory", fmt.Sprint("n", n)), verification{})
	}
	other := *s
	other.o = node("east", "n3")
	if _, p, ok := s.Admit(node("east", "n2"), other.says(other.signs(by, 1, s.now)), s.now); !ok {
		t.Fatal(p)
	}
	if len(s.verified.of) > maxVerified {
		t.Errorf("%d are remembered", len(s.verified.of))
	}
	if _, _, ok := s.Admit(node("east", "n2"), s.says(wide), s.now); ok {
		t.Error("an older statement is admitted")
	}
}

// TestBetterStatements: a machine keeps the statement in force if others would not believe the one that a
// signer with a wrong clock gives it.
func TestBetterStatements(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	g := New(following(self, pinned("west")), self)
	g.update(t, placed(self, 0, "1").Node, now)
	less := g.wanted
	less.Prefixes = nil
	for _, c := range []struct {
		name      string
		have, get authority.Statement
		want      error
	}{
		{"the first one", authority.Statement{}, g.wanted.Signed(now.Add(year)), nil},
		{"a renewal", g.wanted.Signed(now.Add(-time.Hour)), g.wanted.Signed(now), nil},
		{"what says less", g.wanted.Signed(now.Add(-time.Hour)), less.Signed(now), nil},
		{"from the future", g.wanted.Signed(now.Add(-time.Hour)), g.wanted.Signed(now.Add(time.Hour)), ErrSignerAhead},
		{"after one from the future", g.wanted.Signed(now.Add(time.Hour)), g.wanted.Signed(now.Add(2 * time.Hour)), nil},
		{"after one that has ended", g.wanted.Signed(now.Add(-year)), g.wanted.Signed(now.Add(time.Hour)), nil},
		{"older, and the same", g.wanted.Signed(now.Add(-time.Hour)), g.wanted.Signed(now.Add(-2 * time.Hour)), nil},
		{"older, and another", g.wanted.Signed(now.Add(-time.Hour)), less.Signed(now.Add(-2 * time.Hour)), ErrSignerBehind},
	} {
		if g.current = (Signed{Statement: c.have}); c.have.Node != "" {
			g.current.Bytes = []byte("signed")
		}
		if err := g.better(c.get, now); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestEndedStatementsCount: while a root is away, its nodes go on, and what they say is news.
func TestEndedStatementsCount(t *testing.T) {
	s := newStating(t, pinned("west", "east"))
	ended := s.signs(root("east"), 1, s.now.Add(-2*authority.Validity))
	for range 2 {
		if _, p, ok := s.Admit(node("east", "n2"), s.says(ended), s.now); !ok {
			t.Errorf("a record under a statement that has ended is refused: %v", p)
		}
	}
}

// TestLatestSerial: a signer goes above what it has verified of a node, and what the node shows of another
// signer of the same cluster.
func TestLatestSerial(t *testing.T) {
	self, asker, now := node("west", "n1"), node("west", "n2"), time.Now()
	s := New(signing(self, pinned("west")), self)
	want := authority.Statement{Cluster: asker.Cluster, Node: asker.Node, Key: authority.PrivateKey{7}.Public()}
	known, shown := want.Signed(now.Add(time.Hour)), want.Signed(now.Add(2*time.Hour))
	sign := func(by *authority.PrivateKey) []byte {
		signed, err := shown.Sign(*by)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	if got := s.LatestSerial(asker, nil, now); got != 0 {
		t.Errorf("serial %d of nothing", got)
	}
	s.verified.set(asker, verification{latest: known})
	if got := s.LatestSerial(asker, nil, now); got != known.Serial {
		t.Errorf("serial %d, and %d is known", got, known.Serial)
	}
	if got := s.LatestSerial(asker, sign(root("west")), now); got != shown.Serial {
		t.Errorf("serial %d, and %d is shown", got, shown.Serial)
	}
	if got := s.LatestSerial(asker, sign(root("mallory")), now); got != known.Serial {
		t.Errorf("serial %d, because of another root", got)
	}
}

package observe

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// TestState: what a node is, of what was seen of it last.
func TestState(t *testing.T) {
	live, met := []life{{boot: 5}}, []life{{boot: 5, met: true}}
	ago := time.Unix(1, 0)
	for _, tc := range []struct {
		name  string
		seen  contact
		epoch uint64 // of its record
		life  uint64 // that its record names
		want  clustermesh.Contact
	}{
		{"known from disk", contact{}, 5, 0, clustermesh.Held},
		{"a member that was met", contact{lives: met}, 5, 0, clustermesh.Alive},
		{"a member that was met, and is suspect", contact{lives: met, rounds: silentRounds}, 5, 0, clustermesh.Alive},
		{"a member of which nothing is known", contact{lives: live}, 5, 0, clustermesh.Held},
		{"a member that a replay made one", contact{lives: live, rounds: silentRounds}, 5, 0, clustermesh.Silent},
		{"a member that was met, and whose earlier life wrote the record", contact{lives: met}, 4, 0, clustermesh.Quiet},
		{"one whose clock was ahead when it started", contact{lives: met}, 4, 5, clustermesh.Alive},
		{"a restart since its clock is right", contact{lives: met}, 4, 6, clustermesh.Quiet},
		{"gone, and its machine answers", contact{answered: true, since: ago}, 5, 0, clustermesh.Quiet},
		{"one silent probe", contact{rounds: silentRounds - 1}, 5, 0, clustermesh.Held},
		{"enough silent probes", contact{rounds: silentRounds}, 5, 0, clustermesh.Silent},
		{"it had answered, so that takes more", contact{rounds: silentRounds, since: ago}, 5, 0, clustermesh.Held},
		{"more", contact{rounds: quietRounds, since: ago}, 5, 0, clustermesh.Silent},
	} {
		rec := clustermesh.Record{Stamp: clustermesh.Stamp{Epoch: tc.epoch}, Content: clustermesh.Content{Node: &clustermesh.Node{Life: tc.life}}}
		tc.seen.wrote(rec, true)
		if got := tc.seen.of(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestMet: a member is alive from the proof that its daemon is there, until memberlist or silence ends it.
func TestMet(t *testing.T) {
	now := time.Unix(1000, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	n := &contact{}
	is := func(what string, want clustermesh.Contact) {
		t.Helper()
		if got := n.state(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	n.join(5, where, now)
	is("a member that has proven nothing", clustermesh.Held)
	if n.unmet(now) || !n.unmet(now.Add(metGrace)) {
		t.Error("it is asked at once, or never")
	}
	n.meet(5, now)
	is("a member that has", clustermesh.Alive)
	if n.unmet(now.Add(metGrace)) {
		t.Error("it is asked again")
	}
	n.leave(5, now)
	n.join(5, where, now)
	is("a member that was gone", clustermesh.Held)
	for n.probed(Silent, now, now, rng); n.rounds < silentRounds; n.probed(Silent, now, now, rng) {
	}
	n.join(6, where, now)
	is("another life of a silent node", clustermesh.Silent)
	now = now.Add(time.Second)
	n.meet(6, now)
	is("its daemon answers", clustermesh.Alive)
	for range goneRounds - 1 {
		n.probed(Silent, now.Add(1), now.Add(1), rng)
	}
	is("memberlist may be about to see it", clustermesh.Alive)
	n.probed(Silent, now.Add(1), now.Add(1), rng)
	is("memberlist does not see it, whatever it is told", clustermesh.Silent)

	early := &contact{}
	early.meet(5, now)
	early.join(5, where, now.Add(metAge/2))
	if early.state() != clustermesh.Alive {
		t.Error("a daemon that answered just before it became a member is not alive")
	}
}

// TestWanted: whom to probe when.
func TestWanted(t *testing.T) {
	now := time.Unix(1000, 0)
	met := []life{{boot: 5, met: true}}
	for _, tc := range []struct {
		name string
		seen contact
		want bool
	}{
		{"known from disk", contact{}, true},
		{"being probed", contact{probing: true}, false},
		{"probed a moment ago", contact{due: now.Add(time.Millisecond)}, false},
		{"its turn has come", contact{due: now}, true},
		{"a member without a stream, as one that is no neighbour", contact{lives: met}, false},
		{"a member that speaks", contact{lives: met, streams: 1, streamed: true, framed: now.Add(-stalled)}, false},
		{"a member whose stream stalls", contact{lives: met, streams: 1, streamed: true, framed: now.Add(-stalled - 1)}, true},
		{"a member whose stream broke", contact{lives: met, streamed: true, framed: now}, true},
	} {
		if got := tc.seen.wanted(now); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// TestDueIsBounded: a lost clusterset is probed some at a time, the own cluster first, and each once.
func TestDueIsBounded(t *testing.T) {
	c := NewContacts(node("a", "n0"))
	known := clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{node("a", "n0"): {}, {Cluster: "a"}: {}})
	for i := range 3 * maxProbing {
		known = known.With(node("b", fmt.Sprint("n", i)), clustermesh.Record{})
	}
	for i := range 10 {
		known = known.With(node("a", fmt.Sprint("n", 1+i)), clustermesh.Record{})
	}
	now := time.Unix(1000, 0)
	due := c.Due(known, now)
	if len(due) != maxProbing || slices.ContainsFunc(due[:10], func(o clustermesh.Origin) bool { return o.Cluster != "a" || o.Node == "n0" || o.Node == "" }) {
		t.Fatalf("%d are due, first %v", len(due), due[:10])
	}
	if more := c.Due(known, now); len(more) != 0 {
		t.Errorf("%d more, though no probe has ended", len(more))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, o := range due[:7] {
		c.Probed(o, Answered, now, now, rng)
	}
	more := c.Due(known, now)
	if len(more) != 7 || slices.ContainsFunc(more, func(o clustermesh.Origin) bool { return slices.Contains(due, o) }) {
		t.Errorf("after 7 probes the next are %v", more)
	}
}

// TestProbeBudget: however many addresses the lost nodes have, only so many are probed in a second. Those
// of the own cluster come first.
func TestProbeBudget(t *testing.T) {
	c := NewContacts(node("a", "n0"))
	known := clustermesh.ByOrigin[clustermesh.Record]{}
	for i := range 2000 {
		n := &clustermesh.Node{GossipPort: 7946}
		for j := range 10 {
			n.Addresses = append(n.Addresses, netip.AddrFrom4([4]byte{198, byte(j), byte(i >> 8), byte(i)}))
		}
		known = known.With(node("b", fmt.Sprint("n", i)), clustermesh.Record{Content: clustermesh.Content{Node: n}})
	}
	near := node("a", "n1")
	known = known.With(near, clustermesh.Record{})
	rng, began := rand.New(rand.NewPCG(1, 1)), time.Unix(1000, 0)
	probes, nearly := 0, 0
	for now := began; now.Before(began.Add(10 * time.Second)); now = now.Add(100 * time.Millisecond) {
		for _, o := range c.Due(known, now) {
			if probes += len(ProbeAddrs(known.Get(o), netip.AddrPort{})); o == near {
				nearly++
			}
			c.Probed(o, Answered, now, now, rng) // a target that refuses at once
		}
	}
	if probes > 11*probeBudget || probes < 9*probeBudget || nearly < 6 {
		t.Errorf("%d addresses were probed in 10 s, and the node of the own cluster %d times", probes, nearly)
	}
}

// TestLostIsProbedSeldom: a machine that has been silent for minutes is probed seldom, and each second
// again once it answers.
func TestLostIsProbedSeldom(t *testing.T) {
	c, o := NewContacts(node("a", "n0")), node("b", "n1")
	known := clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{o: {}})
	rng, now := rand.New(rand.NewPCG(1, 1)), time.Unix(1000, 0)
	probes := func(of Verdict, during time.Duration) (n int) {
		for end := now.Add(during); now.Before(end); now = now.Add(100 * time.Millisecond) {
			for range c.Due(known, now) {
				n++
				c.Probed(o, of, now, now, rng)
			}
		}
		return n
	}
	if n := probes(Silent, time.Minute); n < 40 {
		t.Errorf("%d probes in the first minute", n)
	}
	probes(Silent, 5*time.Minute)
	if n := probes(Silent, 10*time.Minute); n < 20 || n > 60 {
		t.Errorf("%d probes in ten minutes of a machine that is lost for long, want about 40", n)
	}
	if n := probes(Answered, 2*time.Minute); n < 60 {
		t.Errorf("%d probes in two minutes of a machine that answers again", n)
	}
}

// TestDuplicates: two lives at one address are a restart, and two at two addresses are one until
// memberlist had time to notice it.
func TestDuplicates(t *testing.T) {
	n2, now := node("a", "n2"), time.Unix(1000, 0)
	c := NewContacts(node("a", "n1"))
	c.Join(member.ID{Origin: n2, Boot: 1}, where, now)
	c.Join(member.ID{Origin: n2, Boot: 2}, where, now)
	late := now.Add(duplicateAge + 1)
	if got := c.Duplicates(late); len(got) > 0 {
		t.Errorf("a restart at one address: %v", got)
	}
	c.Join(member.ID{Origin: n2, Boot: 3}, netip.MustParseAddrPort("192.0.2.9:7946"), now)
	if got := c.Duplicates(now.Add(duplicateAge)); len(got) > 0 {
		t.Errorf("too early: %v", got)
	}
	if got := c.Duplicates(late)[n2]; len(got) != 2 {
		t.Errorf("two addresses: %v", got)
	}
}

// TestNewLifeProvesItselfFirst: a daemon that was restarted proves that it is there before
// memberlist notes that its old life is gone and the new one is here. It is alive at once.
func TestNewLifeProvesItselfFirst(t *testing.T) {
	n := &contact{}
	now := time.Unix(1000, 0)
	n.join(5, where, now)
	n.meet(5, now)
	now = now.Add(time.Minute)
	n.meet(6, now)
	n.leave(5, now)
	n.join(6, where, now.Add(metAge/2))
	if got := n.state(); got != clustermesh.Alive {
		t.Errorf("contact %s", got)
	}
	n.leave(6, now)
	n.join(6, where, now) // as a recording of memberlist's datagrams can have it
	if got := n.state(); got != clustermesh.Held {
		t.Errorf("contact %s after it left, though it has proven nothing since", got)
	}
}

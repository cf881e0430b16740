package observe

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// scan is what one gets by looking at all contacts, and at the records.
type scan struct {
	*Contacts
	known records
	now   time.Time
}

// those returns the nodes that are something, sorted.
func (s scan) those(are func(o clustermesh.Origin, n *contact) bool) []clustermesh.Origin {
	out := []clustermesh.Origin{}
	for o, n := range s.nodes {
		if are(o, n) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, clustermesh.Origin.Compare)
	return out
}

// of is the contact with the life that wrote a node's record.
func (s scan) of(o clustermesh.Origin) clustermesh.Contact {
	n, rec := s.look(o), s.known.Get(o)
	if n.state() != clustermesh.Alive {
		return n.state()
	}
	for _, l := range n.lives {
		if l.met && (l.boot <= rec.Stamp.Epoch || rec.Content.Node != nil && l.boot == rec.Content.Node.Life) {
			return clustermesh.Alive
		}
	}
	return clustermesh.Quiet
}

// unmet are the nodes that Unmet should return.
func (s scan) unmet() []clustermesh.Origin {
	asking := len(s.those(func(_ clustermesh.Origin, n *contact) bool { return n.asking }))
	out := s.those(func(o clustermesh.Origin, n *contact) bool { return o != s.self && n.unmet(s.now) })
	slices.SortStableFunc(out, func(a, b clustermesh.Origin) int { return s.look(a).ask.Compare(s.look(b).ask) })
	return out[:max(0, min(len(out), maxAsking-asking))]
}

// due are the nodes that Due should return.
func (s scan) due() []clustermesh.Origin {
	probing := len(s.those(func(_ clustermesh.Origin, n *contact) bool { return n.probing }))
	out := []clustermesh.Origin{}
	for o := range s.known.All() {
		if o.Node != "" && o != s.self && s.look(o).wanted(s.now) {
			out = append(out, o)
		}
	}
	far := func(o clustermesh.Origin) int {
		if o.Cluster == s.self.Cluster {
			return 0
		}
		return 1
	}
	slices.SortFunc(out, func(a, b clustermesh.Origin) int {
		return cmp.Or(far(a)-far(b), s.look(a).due.Compare(s.look(b).due), a.Compare(b))
	})
	return out[:max(0, min(len(out), maxProbing-probing))]
}

// claims are those that a witness with some claims should have after an Update.
func (s scan) claims(before map[clustermesh.Origin]uint64) map[clustermesh.Origin]uint64 {
	after := maps.Clone(before)
	alive := s.those(func(o clustermesh.Origin, n *contact) bool { return o != s.self && n.state().Heard() })
	counts := func(silent clustermesh.Origin) bool {
		nodes, lower := 0, 0
		for o := range s.known.All() {
			if o.Cluster == silent.Cluster && o.Node != "" {
				nodes++
			}
		}
		for _, o := range alive {
			if o.Cluster != silent.Cluster && rank(silent, o) < rank(silent, s.self) {
				lower++
			}
		}
		return silent.Cluster == s.self.Cluster || nodes == 2 && lower < remoteWitnesses
	}
	for _, o := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(s.nodes))) {
		rec, held := s.known.Lookup(o)
		claimed, is := before[o]
		switch {
		case o == s.self:
		case is && (!held || !counts(o) || s.of(o) == clustermesh.Alive || s.look(o).back(s.now) || rec.Stamp.Epoch > claimed):
			delete(after, o)
		case !is && held && s.of(o) == clustermesh.Silent && len(alive) > 0 && counts(o):
			after[o] = rec.Stamp.Epoch
		}
	}
	return after
}

func same(t *rapid.T, what string, got, want any) {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Fatalf("%s: %s, want %s", what, g, w)
	}
}

// check compares what the index has with a scan.
func (s scan) check(t *rapid.T) {
	c := s.Contacts
	other := func(are func(*contact) bool) []clustermesh.Origin {
		return s.those(func(o clustermesh.Origin, n *contact) bool { return o != s.self && are(n) })
	}
	same(t, "alive", c.Alive().Origins(), other(func(n *contact) bool { return n.state().Heard() }))
	same(t, "expected", c.Expected().Origins(), other(func(n *contact) bool {
		return n.state().Heard() || len(n.lives) > 0 && n.state() == clustermesh.Held
	}))
	same(t, "members", append([]clustermesh.Origin{}, c.Members()...), other(func(n *contact) bool { return len(n.lives) > 0 }))
	contacts, proven := map[clustermesh.Origin]clustermesh.Contact{s.self: clustermesh.Alive}, map[clustermesh.Origin]netip.AddrPort{}
	duplicates := map[clustermesh.Origin]int{}
	for o, n := range s.nodes {
		if of := s.of(o); o != s.self && of != clustermesh.Held {
			contacts[o] = of
		}
		if n.metAddr.IsValid() {
			proven[o] = n.metAddr
		}
		if addrs := n.duplicates(s.now); len(addrs) > 0 {
			duplicates[o] = len(addrs)
		}
	}
	meshed, known := map[clustermesh.Origin]bool{}, 1
	for o, r := range s.known.All() {
		n := r.Content.Node
		if n == nil || o == s.self {
			continue
		}
		if known++; n.Speaks < clustermesh.SpeaksRelays && len(s.look(o).lives) > 0 {
			meshed[o] = true
		}
	}
	contactsNow := maps.Collect(c.All(s.known).All())
	which := c.Meshed()
	same(t, "those that know no relays", len(which), len(meshed))
	for o := range meshed {
		if !which[o] {
			t.Fatalf("%s knows no relays", o)
		}
	}
	same(t, "known", c.Known(), known)
	same(t, "contacts", contactsNow, contacts)
	same(t, "proven", maps.Collect(c.Proven().All()), proven)
	got := map[clustermesh.Origin]int{}
	for o, addrs := range c.Duplicates(s.now) {
		got[o] = len(addrs)
	}
	same(t, "duplicates", got, duplicates)
	s.checkPlaces(t)
}

// checkPlaces compares who is missing, and who may be where, with a scan.
func (s scan) checkPlaces(t *rapid.T) {
	neighbour := func(o clustermesh.Origin) bool { return o.Node == "n2" }
	missing := []clustermesh.Origin{}
	for o, r := range s.known.All() {
		n := s.look(o)
		alive := n.state().Heard() && !(neighbour(o) && n.oneSided(s.now))
		if o != s.self && r.Content.Node != nil && !alive {
			missing = append(missing, o)
		}
		at := s.Place(o, r, s.now)
		if may := s.MayBeAt(map[netip.AddrPort]bool{at: true}, s.known); o != s.self && n.state().Heard() && at.IsValid() && !slices.Contains(may, o) {
			t.Fatalf("%s is at %s, and those that may be there are %v", o, at, may)
		}
	}
	slices.SortFunc(missing, clustermesh.Origin.Compare)
	same(t, "missing", append([]clustermesh.Origin{}, s.Missing(s.known, neighbour, s.now)...), missing)
}

// drawer draws what happens to contacts.
type drawer struct {
	*rapid.T
	scan
	witness Witness
	rng     *rand.Rand
}

func (d *drawer) origin() clustermesh.Origin {
	return rapid.SampledFrom([]clustermesh.Origin{
		node("a", "n1"), node("a", "n2"), node("b", "n1"), node("b", "n1"), node("b", "n2"), node("b", "n2"), node("b", "n3"), node("c", "n1"),
	}).Draw(d.T, "node")
}

func (d *drawer) id() member.ID {
	return member.ID{Origin: d.origin(), Boot: rapid.SampledFrom([]uint64{5, 5, 5, 5, 5, 5, 4, 6}).Draw(d.T, "boot")}
}

func (d *drawer) addr() netip.AddrPort {
	return netip.AddrPortFrom(where.Addr(), uint16(rapid.IntRange(1, 3).Draw(d.T, "port")))
}

// events are those that change contacts, and what is asked of them.
func (d *drawer) events() map[string]func() {
	return map[string]func(){
		"join":   func() { d.Join(d.id(), d.addr(), d.now) },
		"leave":  func() { d.Leave(d.id(), d.now) },
		"met":    func() { d.met(d.Met) },
		"opened": func() { d.Stream(d.id(), +1, d.now) },
		"closed": func() {
			if m := d.id(); d.look(m.Origin).streams > 0 {
				d.Stream(m, -1, d.now)
			}
		},
		"frame":   func() { d.met(d.Frame) },
		"dialled": func() { d.Dialled(d.origin(), clustermesh.Record{}, d.addr(), rapid.Bool().Draw(d.T, "proven"), d.now) },
		"asked":   func() { d.Asked(d.origin(), d.now, d.rng) },
		"probed": func() {
			v := rapid.SampledFrom([]Verdict{Silent, Silent, Silent, Answered, Blind}).Draw(d.T, "verdict")
			d.Probed(d.origin(), v, d.now, d.now, d.rng)
		},
		"record": func() {
			o := d.origin()
			rec := clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: rapid.SampledFrom([]uint64{5, 5, 5, 4, 6}).Draw(d.T, "epoch")}}
			if rapid.Bool().Draw(d.T, "of a node") {
				rec.Content.Node = &clustermesh.Node{
					Life:   uint64(rapid.IntRange(0, 6).Draw(d.T, "life")),
					Speaks: uint8(rapid.IntRange(0, clustermesh.SpeaksRelays).Draw(d.T, "speaks")),
				}
				if rapid.Bool().Draw(d.T, "has an address") {
					rec.Content.Node.Addresses, rec.Content.Node.GossipPort = []netip.Addr{where.Addr()}, d.addr().Port()
				}
			}
			d.known = d.known.With(o, rec)
		},
		"follow": func() {
			d.Follow(map[clustermesh.Origin]bool{d.origin(): rapid.Bool().Draw(d.T, "wanted")}, d.now)
		},
		"reports": func() {
			d.Believe(Sight{
				Heard:  rapid.SliceOfDistinct(rapid.SampledFrom([]clustermesh.ClusterName{"b", "c"}), rapid.ID).Draw(d.T, "linked"),
				Silent: rapid.SliceOfDistinct(rapid.SampledFrom([]clustermesh.NodeName{"n1", "n2"}), rapid.ID).Draw(d.T, "silent"),
			})
		},
		"no record": func() { d.known = d.known.Without(d.origin()) },
		"restored":  func() { d.Restore([]clustermesh.Silence{{Origin: d.origin(), Epoch: 5}}) },
		"time": func() {
			d.now = d.now.Add(time.Duration(rapid.SampledFrom([]int{1, 300, 2000, 70_000}).Draw(d.T, "ms")) * time.Millisecond)
		},
		"sweep":  func() { d.sweep() },
		"forget": func() { d.forget() },
		"unmet": func() {
			want := d.scan.unmet()
			same(d.T, "unmet", append([]clustermesh.Origin{}, d.Unmet(d.now)...), want)
		},
		"due": func() {
			want := d.scan.due()
			same(d.T, "due", append([]clustermesh.Origin{}, d.Due(d.known, d.now)...), want)
		},
		"claims": func() {
			before := maps.Clone(d.witness.claims)
			want := d.claims(before)
			changed := d.witness.Update(d.Contacts, d.known, d.now)
			same(d.T, "claims", d.witness.claims, want)
			same(d.T, "claims changed", changed, !maps.Equal(before, want))
		},
	}
}

// met notes a sign of life. That changes a contact as its own method does, although Met takes a
// shorter way at most heartbeats, and Met returns whether the contact changed.
func (d *drawer) met(note func(member.ID, time.Time) bool) {
	m := d.id()
	want := *d.look(m.Origin)
	want.lives = slices.Clone(want.lives)
	before := want.state()
	want.meet(m.Boot, d.now)
	same(d.T, "changed by a sign of life", note(m, d.now), want.state() != before)
	got := *d.look(m.Origin)
	want.at, want.shown, want.far, want.vouched, want.suspected = got.at, got.shown, got.far, got.vouched, got.suspected
	same(d.T, "after a sign of life", got, want)
}

func (d *drawer) sweep() {
	ends := d.those(func(_ clustermesh.Origin, n *contact) bool {
		for _, l := range n.lives {
			if l.gone && !n.isHeard(l.boot, d.now) {
				return true
			}
		}
		return false
	})
	same(d.T, "swept", d.Sweep(d.now), len(ends) > 0)
	for _, o := range ends {
		for _, l := range d.look(o).lives {
			if l.gone && !d.look(o).isHeard(l.boot, d.now) {
				d.Fatalf("a life of %s is left", o)
			}
		}
	}
}

func (d *drawer) forget() {
	want := d.those(func(o clustermesh.Origin, n *contact) bool {
		return o == d.self || len(n.lives) > 0 || n.streams > 0 || n.probing || n.asking || d.now.Sub(n.metAt) < metAge
	})
	for o := range d.known.All() {
		if o != d.self && !slices.Contains(want, o) {
			want = append(want, o)
		}
	}
	slices.SortFunc(want, clustermesh.Origin.Compare)
	d.Forget(d.known, d.now)
	same(d.T, "not forgotten", d.those(func(clustermesh.Origin, *contact) bool { return true }), want)
}

// TestIndex: whatever happens to contacts, the index has what one gets by looking at all of them.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &drawer{
			T: t, scan: scan{NewContacts(node("a", "n1")), records{}, time.Unix(1000, 0)},
			witness: Witness{claims: map[clustermesh.Origin]uint64{}}, rng: rand.New(rand.NewPCG(1, 1)),
		}
		d.Pin(func(c clustermesh.ClusterName) bool { return c == "b" })
		events := d.events()
		names := slices.Sorted(maps.Keys(events))
		for range 3 { // those that take several in a row to make a difference
			names = append(names, "join", "met", "probed", "opened", "due", "unmet", "claims", "time")
		}
		for range rapid.IntRange(1, 400).Draw(t, "events") {
			events[rapid.SampledFrom(names).Draw(t, "event")]()
			d.check(t)
		}
	})
}

// TestFirst: the first of some are those that one gets by sorting all.
func TestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*contact
		for i, at := range rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "order") {
			all = append(all, &contact{at: i, rounds: at})
		}
		order := func(a, b *contact) int { return cmp.Or(a.rounds-b.rounds, a.at-b.at) }
		n := rapid.IntRange(-1, 8).Draw(t, "n")
		got := first(all, n, order)
		slices.SortFunc(all, order)
		if want := all[:max(0, min(n, len(all)))]; !slices.Equal(got, want) {
			t.Fatalf("%d of %d, want %d", len(got), len(all), len(want))
		}
	})
}

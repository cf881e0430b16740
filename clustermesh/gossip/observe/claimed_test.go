package observe

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// TestClaimedLife: another life of a node, which a holder of the gossip key can name, neither leads
// astray who wants to talk to it, nor keeps it alive when it is gone.
func TestClaimedLife(t *testing.T) {
	n2 := node("a", "n2")
	real, claimed := member.ID{Origin: n2, Boot: 5}, member.ID{Origin: n2, Boot: 9}
	elsewhere := netip.MustParseAddrPort("203.0.113.66:7946")
	w := newWatch(t, n2)
	w.Join(claimed, elsewhere, w.now)
	if got := w.Addr(n2); got != elsewhere {
		t.Errorf("nothing else is known of it, and its address is %s", got)
	}
	w.hear(real)
	if got := w.Addr(n2); got != where {
		t.Errorf("the address is that of the life that proved nothing: %s", got)
	}
	known := clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{n2: {Origin: n2, Stamp: clustermesh.Stamp{Epoch: 5}}})
	w.Join(member.ID{Origin: n2, Boot: 1}, elsewhere, w.now)
	if got := w.All(known).Get(n2); got != clustermesh.Alive {
		t.Errorf("the life that wrote its record is %s", got)
	}
	known = known.With(n2, clustermesh.Record{Origin: n2, Stamp: clustermesh.Stamp{Epoch: 4}})
	if got := w.All(known).Get(n2); got != clustermesh.Quiet {
		t.Errorf("an earlier life wrote its record, one is claimed that did so, and it is %s", got)
	}
	w.Leave(member.ID{Origin: n2, Boot: 1}, w.now)
	w.Leave(real, w.now)
	w.want(n2, clustermesh.Held, false)
	w.records = w.records.With(n2, clustermesh.Record{Origin: n2, Stamp: clustermesh.Stamp{Epoch: 9}})
	w.Met(real, w.now) // it was on its way
	w.want(n2, clustermesh.Held, false)
	w.Met(claimed, w.now)
	w.want(n2, clustermesh.Alive, false)
}

// TestMuteMember: a daemon that says nothing while its machine answers is asked who it is. If it does not
// say, it is not alive, whatever memberlist is told; if it does, it stays alive without a stream.
func TestMuteMember(t *testing.T) {
	for _, answers := range []bool{false, true} {
		n2, n3 := member.ID{Origin: node("a", "n2"), Boot: 5}, member.ID{Origin: node("a", "n3"), Boot: 5}
		w := newWatch(t, n2.Origin, n3.Origin)
		w.hear(n2)
		w.hear(n3)
		w.Stream(n2, +1, w.now)
		if got := w.Unmet(w.now.Add(time.Hour)); len(got) > 0 {
			t.Errorf("asked: %v", got)
		}
		w.Stream(n2, -1, w.now)
		w.probe(n2.Origin, Answered)
		if got := w.Unmet(w.now); !slices.Contains(got, n2.Origin) {
			t.Fatalf("asked: %v", got)
		}
		if answers {
			w.Met(n2, w.now)
		}
		w.Asked(n2.Origin, w.now, w.rng)
		want := clustermesh.Alive
		for range goneRounds - 1 {
			w.want(n2.Origin, want, false)
			if !answers {
				w.probe(n2.Origin, Answered)
			}
		}
		if !answers {
			want = clustermesh.Quiet
		}
		w.want(n2.Origin, want, false)
		if due := w.Due(w.records, w.now.Add(time.Hour)); slices.Contains(due, n2.Origin) == answers {
			t.Errorf("it answers: %v; probed: %v", answers, due)
		}
	}
}

// TestAttested: of a node of a cluster that is pinned, the addresses that were admitted are probed, and
// that where it proved itself, but not one where it is only said to be a member.
func TestAttested(t *testing.T) {
	o := node("b", "n1")
	elsewhere := netip.MustParseAddrPort("203.0.113.66:7946")
	w := newWatch(t)
	w.Join(member.ID{Origin: o, Boot: 5}, elsewhere, w.now)
	placed := clustermesh.Record{Content: clustermesh.Content{Node: &clustermesh.Node{Addresses: []netip.Addr{where.Addr()}, GossipPort: where.Port()}}}
	for _, c := range []struct {
		what   string
		pinned bool
		record clustermesh.Record
		want   []netip.AddrPort
	}{
		{"nothing is pinned", false, placed, []netip.AddrPort{where, elsewhere}},
		{"pinned", true, placed, []netip.AddrPort{where}},
		{"pinned, without addresses", true, clustermesh.Record{}, nil},
	} {
		w.Pin(func(clustermesh.ClusterName) bool { return c.pinned })
		if got := w.ProbeAddrs(o, c.record); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	w.Met(member.ID{Origin: o, Boot: 5}, w.now)
	if got := w.ProbeAddrs(o, placed); !slices.Equal(got, []netip.AddrPort{where}) {
		t.Errorf("where it is only said to be: %v", got)
	}
	w.Dialled(o, placed, elsewhere, true, w.now)
	if got := w.ProbeAddrs(o, placed); !slices.Equal(got, []netip.AddrPort{where, elsewhere}) {
		t.Errorf("where it proved itself: %v", got)
	}
	w.Dialled(o, placed, where, true, w.now)
	w.Dialled(o, placed, elsewhere, true, w.now) // an attacker may relay what arrives there
	if got := w.ProbeAddrs(o, placed); !slices.Equal(got, []netip.AddrPort{where}) {
		t.Errorf("where it proved itself, and was stated to be: %v", got)
	}
}

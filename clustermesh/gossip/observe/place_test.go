package observe

import (
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// TestPlace: a node of a pinned cluster is dialled where it is stated to be, then where it proved itself, and
// last where it is said to be a member. What fails waits until the others have failed.
func TestPlace(t *testing.T) {
	o := node("b", "n1")
	said, proven := netip.MustParseAddrPort("203.0.113.66:7946"), netip.MustParseAddrPort("203.0.113.67:7946")
	rec := clustermesh.Record{Content: clustermesh.Content{Node: &clustermesh.Node{Addresses: []netip.Addr{where.Addr()}, GossipPort: where.Port()}}}
	w := newWatch(t)
	w.Join(member.ID{Origin: o, Boot: 5}, said, w.now)
	at := func(want netip.AddrPort, rec clustermesh.Record, after time.Duration) {
		t.Helper()
		if got := w.Place(o, rec, w.now.Add(after)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	at(said, rec, 0)
	w.Pin(func(clustermesh.ClusterName) bool { return true })
	at(where, rec, 0)
	at(said, clustermesh.Record{}, 0)
	w.Dialled(o, rec, proven, true, w.now)
	at(where, rec, 0)
	at(proven, clustermesh.Record{}, 0)
	for i, missed := range []netip.AddrPort{where, proven, said} {
		at(missed, rec, 0)
		w.Dialled(o, rec, missed, false, w.now.Add(time.Duration(i)))
	}
	at(where, rec, 0) // the one that failed first
	at(where, rec, badFor+time.Second)
	for i := range 3 * maxBad {
		w.Dialled(o, rec, netip.AddrPortFrom(said.Addr(), uint16(i)), false, w.now)
	}
	if n := len(w.node(o).bad); n > maxBad {
		t.Errorf("%d addresses are remembered", n)
	}
}

// TestLeaveUnproven: a member of a pinned cluster that speaks on its stream stays, whatever memberlist says,
// until it falls silent.
func TestLeaveUnproven(t *testing.T) {
	m := member.ID{Origin: node("b", "n1"), Boot: 5}
	for _, pinned := range []bool{false, true} {
		w := newWatch(t)
		w.Pin(func(clustermesh.ClusterName) bool { return pinned })
		w.Join(m, where, w.now)
		w.Stream(m, +1, w.now)
		w.Leave(m, w.now)
		if got := w.Contact(m.Origin) == clustermesh.Alive; got != pinned {
			t.Errorf("pinned %v: alive %v", pinned, got)
		}
		if w.Sweep(w.now.Add(stalled)) {
			t.Errorf("pinned %v: it went while it speaks", pinned)
		}
		if ended := w.Sweep(w.now.Add(stalled + 1)); ended != pinned || w.Contact(m.Origin) == clustermesh.Alive {
			t.Errorf("pinned %v: ended %v, and it is %v", pinned, ended, w.Contact(m.Origin))
		}
	}
}

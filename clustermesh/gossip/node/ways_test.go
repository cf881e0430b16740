package node

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/replica"
)

// TestReports: what relays of its own cluster hear, a node takes from them: from no other cluster, not in
// a small clusterset, and only while there is a stream to them.
func TestReports(t *testing.T) {
	for _, c := range []struct {
		what    string
		members int // of the other cluster
		by      clustermesh.Origin
		ended   bool
		want    clustermesh.Contact
	}{
		{"a relay reports it", 30, origin("west", "n2"), false, clustermesh.Reported},
		{"a node of another cluster reports it", 30, origin("north", "n1"), false, clustermesh.Held},
		{"the stream to the relay has ended", 30, origin("west", "n2"), true, clustermesh.Held},
		{"each node has a stream to each", 5, origin("west", "n2"), false, clustermesh.Held},
	} {
		n := New(config(origin("west", "n1"), at), Saved{}, at)
		now := at
		n.SetRunning(true, now)
		var events []MemberEvent
		join := func(o clustermesh.Origin) {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(len(events))}), 7946)
			events = append(events, MemberEvent{Member: member.Peer{ID: member.ID{Origin: o, Boot: 5}}, Addr: addr, Alive: true})
		}
		for i := range 4 {
			join(origin("west", fmt.Sprint("n", i+2)))
		}
		for i := range c.members {
			join(origin("east", fmt.Sprint("n", i+1)))
		}
		join(origin("north", "n1"))
		n.Beat(events, nil, now)
		s, err := n.Opened(Peer{Peer: member.Peer{ID: member.ID{Origin: c.by, Boot: 5}}}, Shown{}, "192.0.2.9", now)
		if err != nil {
			t.Fatal(err)
		}
		s.Receive(&replica.Links{Heard: []clustermesh.ClusterName{"east"}}, now)
		if c.ended {
			s.Close(now)
		}
		now = now.Add(200 * time.Millisecond)
		n.Beat(nil, nil, now)
		for _, e := range events {
			linked := c.members > 20 && n.replica.IsNeighbour(e.Member.Origin)
			if o := e.Member.Origin; o.Cluster == "east" && !linked && n.contacts.Contact(o) != c.want {
				t.Errorf("%s: %s is %s, want %s", c.what, o, n.contacts.Contact(o), c.want)
				break
			}
		}
	}
}

// TestArrivals: a node knows from which peer the last record of each came, and when.
func TestArrivals(t *testing.T) {
	n, o, by := New(config(origin("west", "n1"), at), Saved{}, at), origin("east", "n1"), origin("west", "n2")
	s, err := n.Opened(Peer{Peer: member.Peer{ID: member.ID{Origin: by, Boot: 5}}}, Shown{}, "192.0.2.9", at)
	if err != nil {
		t.Fatal(err)
	}
	later := at.Add(time.Minute)
	s.Receive(&replica.Snapshot{Entries: []replica.Entry{entry(t, o, placed(o, 1, "1"), at)}}, later)
	if got := n.Ways(later).Arrivals; len(got) != 1 || got[o] != (Arrival{From: by, At: later}) {
		t.Errorf("arrivals %v", got)
	}
}

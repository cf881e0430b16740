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

// TestArrivals: a node knows from which peer the version of each record came that it holds, and when; of its
// own, when it wrote it.
func TestArrivals(t *testing.T) {
	self, o, by := origin("west", "n1"), origin("east", "n1"), origin("west", "n2")
	n := New(config(self, at), Saved{}, at)
	s, err := n.Opened(Peer{Peer: member.Peer{ID: member.ID{Origin: by, Boot: 5}}}, Shown{}, "192.0.2.9", at)
	if err != nil {
		t.Fatal(err)
	}
	now := at
	arrivals := func(what string, want map[clustermesh.Origin]clustermesh.Origin) {
		t.Helper()
		got := n.Ways(now).Arrivals
		if len(got) != len(want) {
			t.Errorf("%s: arrivals %v", what, got)
		}
		for o, from := range want {
			if r, _ := n.replica.Record(o); got[o].From != from || got[o].Stamp != r.Stamp {
				t.Errorf("%s: %s came as %+v, want %s from %s", what, o, got[o], r.Stamp, from)
			}
		}
	}
	now = now.Add(time.Minute)
	s.Receive(&replica.Snapshot{Entries: []replica.Entry{entry(t, o, placed(o, 1, "1"), at)}}, now)
	arrivals("a record came", map[clustermesh.Origin]clustermesh.Origin{o: by})
	if got := n.Ways(now).Arrivals[o].At; !got.Equal(now) {
		t.Errorf("it came at %s, want %s", got, now)
	}
	n.Publish(placed(self, 0, "1"), now)
	arrivals("a record was written", map[clustermesh.Origin]clustermesh.Origin{o: by, self: self})
	written := n.Ways(now).Arrivals[self]
	now = now.Add(time.Minute)
	n.Publish(placed(self, 0, "2"), now)
	arrivals("it was written again", map[clustermesh.Origin]clustermesh.Origin{o: by, self: self})
	if got := n.Ways(now).Arrivals[self]; !got.At.Equal(now) || got.Stamp.Compare(written.Stamp) <= 0 {
		t.Errorf("after %+v it was written as %+v", written, got)
	}
	n.ways.arrivals[o] = Arrival{From: by, At: at}
	arrivals("what came is not held any more", map[clustermesh.Origin]clustermesh.Origin{self: self})
}

package node

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// roll is a Room that keeps who is known.
type roll struct {
	*member.Room
	known map[clustermesh.Origin]bool
}

func (r roll) Know(nodes map[clustermesh.Origin]bool) {
	maps.Copy(r.known, nodes)
	maps.DeleteFunc(r.known, func(_ clustermesh.Origin, known bool) bool { return !known })
}

// TestSinceTheLastTick: however the records change, the room knows the nodes that one finds by
// looking at all records, and so is this machine's clock behind.
func TestSinceTheLastTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		self, now := origin("a", "n1"), at
		room := roll{member.NewRoom(10), map[clustermesh.Origin]bool{}}
		cfg := config(self, now)
		cfg.Room = room
		v := newObserver(&core{cfg: cfg, now: now}, nil)
		var all clustermesh.Draft[clustermesh.Record]
		var e epochs
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			o := clustermesh.Origin{
				Cluster: rapid.SampledFrom([]clustermesh.ClusterName{"a", "b"}).Draw(t, "cluster"),
				Node:    rapid.SampledFrom([]clustermesh.NodeName{"", "", "n1", "n2", "n3"}).Draw(t, "node"),
			}
			if all.Delete(o); rapid.IntRange(0, 3).Draw(t, "is there") > 0 {
				r := clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: uint64(at.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "hours")) * time.Hour).UnixNano())}}
				for n := range rapid.IntRange(0, 5).Draw(t, "lists") {
					if o.Node == "" {
						r.Content.Nodes = append(r.Content.Nodes, clustermesh.NodeName(fmt.Sprint("n", n)))
					}
				}
				all.Set(o, r)
			}
			now = now.Add(time.Duration(rapid.IntRange(-60, 90).Draw(t, "minutes")) * time.Minute)
			if rapid.Bool().Draw(t, "no tick") {
				continue
			}
			records := all.Share()
			v.records = held{records}
			v.knowMembers()
			want := map[clustermesh.Origin]bool{self: true}
			for o, r := range records.All() {
				if o.Node != "" {
					want[o] = true
				}
				for _, n := range r.Content.Nodes {
					want[clustermesh.Origin{Cluster: o.Cluster, Node: n}] = true
				}
			}
			if !maps.Equal(room.known, want) {
				t.Fatalf("known: %v, want %v", room.known, want)
			}
			if got, want := e.behind(self, records, now), plainlyBehind(self, records, now); got != want {
				t.Fatalf("behind by %s, want %s", got, want)
			}
		}
	})
}

// held are records that a node has.
type held struct {
	clustermesh.ByOrigin[clustermesh.Record]
}

func (h held) Record(o clustermesh.Origin) (clustermesh.Record, bool) { return h.Lookup(o) }
func (h held) Records() clustermesh.ByOrigin[clustermesh.Record]      { return h.ByOrigin }

// plainlyBehind looks at all records.
func plainlyBehind(self clustermesh.Origin, records clustermesh.ByOrigin[clustermesh.Record], now time.Time) (by time.Duration) {
	early, others := 0, 0
	for o, r := range records.All() {
		if o.Node == "" || o == self {
			continue
		}
		if others++; ahead(o, r.Stamp.Epoch, now) > 0 {
			early++
		}
		by = max(by, ahead(o, r.Stamp.Epoch, now))
	}
	if 2*early <= others {
		return 0
	}
	return by
}

package gossip

import (
	"fmt"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
)

// TestLongMessage: while a daemon takes a message of thousands of records, what others send comes between:
// one that repeated what differs from a record once kept all else waiting for 18 s.
func TestLongMessage(t *testing.T) {
	const records = 3000
	var entries []replica.Entry
	for i := range records {
		e, err := replica.NewEntry(clustermesh.Record{Origin: origin("west", fmt.Sprint("n", i)), Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	frame, err := replica.Encode(&replica.Snapshot{Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(config(origin("east", "n1")))
	if err != nil {
		t.Fatal(err)
	}
	var peer stream.Peer
	peer.ID = member.ID{Origin: origin("west", "n0"), Boot: 5}
	s, err := host{g}.Accept(peer, "192.0.2.9")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Receive(frame) }()
	held := func() int {
		return ask(g, func(n *node.Node, _ time.Time) int { return n.State().Records.Len() })
	}
	between := false
	for len(done) == 0 {
		n := held()
		between = between || n > 0 && n < records
	}
	if err := <-done; err != nil || held() != records {
		t.Fatalf("%d records are held: %v", held(), err)
	}
	if !between {
		t.Error("nothing could come between the first record and the last one")
	}
}

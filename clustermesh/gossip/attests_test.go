package gossip

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/stream"
)

// TestAttestsArePaced: peers of which nothing is known ask as fast as they can. The reviewer is asked at most at
// its rate, and a node that has proven who it is has its answer at once.
func TestAttestsArePaced(t *testing.T) {
	t.Parallel()
	pins := pinned("west")
	c := signing(config(origin("west", "n1")), pins)
	var asked, reviews atomic.Int64
	c.Attest = func(context.Context, authority.Request) error { reviews.Add(1); return nil }
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	channel := make([]byte, 32)
	ask := func(ctx context.Context, name string, key authority.PrivateKey, shown []byte) error {
		o := origin("west", name)
		request, err := authority.Request{Want: authority.Statement{Cluster: o.Cluster, Node: o.Node, Key: key.Public()}}.Sign(key, channel)
		if err != nil {
			t.Fatal(err)
		}
		peer := stream.Peer{Peer: member.Peer{ID: member.ID{Origin: o, Boot: 1}}, Key: stream.Key(key.Public()), Statement: shown}
		_, _, err = signer{g}.certify(ctx, peer, channel, request)
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("new-%d-%d", i, n)
				asked.Add(1)
				_ = ask(ctx, name, *seeded(name), nil)
			}
		})
	}
	// All that ask wait: for four seconds, as many as they are.
	eventually(t, "the burst is used", func() bool { return reviews.Load() >= attestBurst && asked.Load() >= attestBurst+200 })
	sleep(ctx, 100*time.Millisecond)
	key := *seeded("key of west/n2")
	shown, err := authority.Statement{Cluster: "west", Node: "n2", Key: key.Public(), NotBefore: 1, NotAfter: 2}.Sign(*root("west"))
	if err != nil {
		t.Fatal(err)
	}
	limited, done := context.WithTimeout(ctx, time.Second)
	defer done()
	if err := ask(limited, "n2", key, shown); err != nil {
		t.Errorf("a node that is known: %v", err)
	}
	time.Sleep(500 * time.Millisecond)
	cancel()
	wg.Wait()
	// The limiter reads the clock before it locks, so on a busy machine it counts some time twice.
	if most := attestBurst + 2 + int64(2*time.Since(began).Seconds()*attestRate); reviews.Load() > most {
		t.Errorf("%d reviews, at most %d may be", reviews.Load(), most)
	}
}

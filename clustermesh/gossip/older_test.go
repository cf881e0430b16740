package gossip

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/trust"
)

// TestSignersAgreeOnSerials: a signer goes above what the node that asks shows of another signer.
func TestSignersAgreeOnSerials(t *testing.T) {
	asker := origin("west", "n2")
	c := signing(config(origin("west", "n1")), pinned("west"))
	g, err := New(attesting(c, asker, new(atomic.Int64)))
	if err != nil {
		t.Fatal(err)
	}
	key, channel := *seeded("key of " + asker.String()), []byte("channel")
	want := authority.Statement{Cluster: asker.Cluster, Node: asker.Node, Key: key.Public()}
	request, err := authority.Request{Want: want}.Sign(key, channel)
	if err != nil {
		t.Fatal(err)
	}
	serial := func(shown []byte) uint64 {
		t.Helper()
		a, _, err := signer{g}.certify(t.Context(), stream.Peer{Statement: shown}, channel, request)
		if err != nil {
			t.Fatal(err)
		}
		s, err := authority.OpenStatement(a.Statement, g.Trust().Listed)
		if err != nil {
			t.Fatal(err)
		}
		return s.Serial
	}
	other := want.Signed(time.Now().Add(time.Hour))
	shown, err := other.Sign(*root("west"))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := want.Signed(time.Now().Add(2 * time.Hour)).Sign(*root("mallory"))
	if err != nil {
		t.Fatal(err)
	}
	if got := serial(nil); got >= other.Serial {
		t.Errorf("serial %d, without need", got)
	}
	if got := serial(shown); got != other.Serial+1 {
		t.Errorf("serial %d, after one of %d", got, other.Serial)
	}
	if got := serial(forged); got >= other.Serial {
		t.Errorf("serial %d, because of a statement of another root", got)
	}
}

// TestSignerAhead: the clock of the machine that signs is ahead. Machines that had a statement go on, say so,
// and have the new one soon after that clock is right.
func TestSignerAhead(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	first, second := origin("west", "n1"), origin("west", "n2")
	var ahead atomic.Int64
	c := signing(config(second), pins)
	c.Attest = func(context.Context, authority.Request) error { return nil }
	c.clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	keeper := start(t, c)
	keeper.tell(0, 2)
	follower := start(t, following(config(first, keeper.cfg.Bind), pins))
	content := placed(first, 0, "1")
	content.Node.Follower = true
	follower.Publish(content)
	east := start(t, signing(config(origin("east", "n1"), keeper.cfg.Bind), pins))
	eventually(t, "it is believed", func() bool { return east.said(first) == 1 })

	const says = "behind that of the machine that signs for it"
	ahead.Store(int64(year))
	content = placed(first, 0, "3")
	content.Node.Follower = true
	content.Node.Prefixes = append(content.Node.Prefixes, netip.MustParsePrefix("10.0.77.0/24"))
	follower.Publish(content)
	eventually(t, "it says that a clock is wrong", func() bool { return follower.hasProblem(says) })
	content.Endpoints = placed(first, 0, "4").Endpoints
	follower.Publish(content)
	eventually(t, "what it says is believed", func() bool { return east.said(first) == 4 })
	follower.do(func(n *node.Node, now time.Time) {
		n.ReportStatement(fmt.Errorf("answers: %w", trust.ErrSignerAhead), time.Time{}, now)
	})
	if follower.hasProblem("is not renewed") {
		t.Errorf("it says it twice: %v", follower.Problems())
	}
	ahead.Store(0)
	eventually(t, "what is new is stated", func() bool { return len(east.Trust().Statements[first].Prefixes) == 2 })
	eventually(t, "no clock is wrong", func() bool { return !follower.hasProblem(says) })
}

const year = 365 * 24 * time.Hour

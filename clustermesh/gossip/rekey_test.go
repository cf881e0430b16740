package gossip

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/internal/gossipkey"
)

// TestRekey: three daemons replace their key, one after the other in each step. What is said arrives
// all the time, and no daemon is thought to be away for a moment. Then the old key opens nothing.
func TestRekey(t *testing.T) {
	t.Parallel()
	c1 := config(origin("a", "n1"))
	ds := []*daemon{start(t, c1), start(t, config(origin("a", "n2"), c1.Bind)), start(t, config(origin("b", "n3"), c1.Bind))}
	everyoneHeard := func(n int) bool {
		for _, d := range ds {
			for _, o := range ds {
				if d != o && (d.said(o.cfg.Self) != n || d.contact(o.cfg.Self) != clustermesh.Alive) {
					return false
				}
			}
		}
		return true
	}
	n := 1
	say := func() {
		n++
		for _, d := range ds {
			d.say(n)
		}
	}
	say()
	eventually(t, "all hear each other", func() bool { return everyoneHeard(n) })
	stop, away := make(chan struct{}), make(chan int)
	go func() { away <- watchAway(ds, stop) }()
	old, next := testKeys[0], keyOf(9)
	for keys := testKeys; len(keys) != 1 || keys[0] != next; {
		keys = keys.Toward(next)
		for _, d := range ds {
			if err := d.Rekey(keys); err != nil {
				t.Fatal(err)
			}
			say()
			if took := eventually(t, "what is said arrives", func() bool { return everyoneHeard(n) }); took > 3*time.Second {
				t.Errorf("what was said took %s", took)
			}
		}
		time.Sleep(1500 * time.Millisecond) // the streams are opened again
	}
	time.Sleep(6 * time.Second) // streams that proved the old key alone end, and memberlist would miss a member
	close(stop)
	if n := <-away; n > 0 {
		t.Errorf("a node was thought to be away, %d times", n)
	}
	for _, d := range ds {
		if d.hasProblem("gossip key") {
			t.Errorf("%s has problems: %v", d.cfg.Self, d.Problems())
		}
	}
	if _, err := asks(t, gossipkey.Ring{old}, c1.Bind.String()); err == nil {
		t.Error("the old key still opens a connection")
	}
	if conn, err := asks(t, gossipkey.Ring{next}, c1.Bind.String()); err != nil {
		t.Errorf("the new key opens no connection: %v", err)
	} else {
		conn.Close()
	}
}

// asks opens a connection for members with keys.
func asks(t *testing.T, keys gossipkey.Ring, addr string) (net.Conn, error) {
	t.Helper()
	s, err := stream.New(member.Peer{ID: member.ID{Origin: origin("b", "stranger"), Boot: 1}}, keys, stream.Credentials{}, asker{}, stream.Services{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return s.DialMembers(ctx, addr)
}

// watchAway counts how often a daemon is thought to be away, until stop.
func watchAway(ds []*daemon, stop chan struct{}) (n int) {
	for {
		select {
		case <-stop:
			return n
		case <-time.After(time.Millisecond):
		}
		for _, d := range ds {
			for o, contact := range d.State().Contacts.All() {
				if o != d.cfg.Self && contact != clustermesh.Alive {
					n++
				}
			}
		}
	}
}

// TestPingsAreMeasured: a node measures the way to other clusters' nodes, and to no others.
func TestPingsAreMeasured(t *testing.T) {
	t.Parallel()
	c1 := config(origin("a", "n1"))
	d := start(t, c1)
	near, other := config(origin("a", "n2"), c1.Bind), config(origin("b", "n3"), c1.Bind)
	start(t, near)
	start(t, other)
	eventually(t, "b/n3 was pinged", func() bool { return d.RTTs()[other.Self] > 0 })
	time.Sleep(2 * time.Second) // a/n2 is pinged too
	if rtts := d.RTTs(); len(rtts) != 1 {
		t.Errorf("measured: %v", rtts)
	}
}

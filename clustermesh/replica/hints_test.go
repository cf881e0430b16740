package replica

import (
	"math/rand/v2"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// lazily is a topology that hints at everything.
type lazily struct{ topology.FullMesh }

func (l lazily) Ways(v topology.View) topology.Ways { return lazyWays{topology.Flood(v.Members)} }

type lazyWays struct{ topology.Flood }

func (w lazyWays) Spread(_ topology.News, neighbours []clustermesh.Origin) topology.Spread {
	return topology.Spread{Hints: neighbours}
}

// TestHints: who is hinted at a record asks for it, after a moment and once, and only if it lacks it.
func TestHints(t *testing.T) {
	self, peer := simOrigin(0), simOrigin(1)
	pair := func() (a, b *Replica) {
		a = New(Config{Self: self, Epoch: 5, Topology: lazily{}}, nil)
		b = New(Config{Self: peer, Epoch: 5}, nil)
		a.Publish(content(self, 1))
		for r, p := range map[*Replica]Peer{a: peer, b: self} {
			r.SetMembers(topology.View{Members: []clustermesh.Origin{p}})
			r.Receive(p, &Hello{Speaks: SpeaksHints})
			r.Connected(p, true)
		}
		e, _ := a.Entry(self)
		b.Receive(self, &Snapshot{Entries: []Entry{e}})
		return a, b
	}
	a, b := pair()
	if out := a.Publish(content(self, 2)); len(out.Send) > 0 || !a.Waits() {
		t.Fatalf("at once %d messages are sent; something waits: %v", len(out.Send), a.Waits())
	}
	if out := a.Pulse(); len(out.Send) > 0 {
		t.Errorf("after the first moment %d messages are sent", len(out.Send))
	}
	out := a.Pulse()
	if len(out.Send) != 1 || a.Waits() {
		t.Fatalf("after the second moment %d messages are sent; something waits: %v", len(out.Send), a.Waits())
	}
	hint := out.Send[0].Message.(*Announce)
	if len(hint.Hints) != 1 || len(hint.Offers) != 0 {
		t.Fatalf("it is hinted: %+v", hint)
	}
	for i, asks := range []int{1, 0} { // once
		if got := b.Receive(self, hint); len(got.Send) != asks {
			t.Errorf("time %d: who lacks it sends %d messages", i+1, len(got.Send))
		}
	}
	e, _ := a.Entry(self)
	b.Receive(self, &Snapshot{Entries: []Entry{e}})
	b.Tick(rand.New(rand.NewPCG(1, 1)))
	if got := b.Receive(self, hint); len(got.Send) > 0 {
		t.Errorf("who has it sends %d messages", len(got.Send))
	}
	b.synced = true
	for i, asks := range []int{1, 0} { // once a tick
		if got := b.Receive(self, &Announce{Hints: []Hint{{Of: 7, Sum: 1}}}); len(got.Send) != asks {
			t.Errorf("of something unknown, time %d: %d messages", i+1, len(got.Send))
		}
	}
}

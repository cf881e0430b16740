package replica

import (
	"math/rand/v2"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// meet lets two replicas exchange everything.
func meet(t *testing.T, a, b *Replica, pa, pb Peer) {
	t.Helper()
	type mail struct {
		to   *Replica
		from Peer
		m    Message
	}
	var post []mail
	send := func(from *Replica, out Output) {
		for _, e := range out.Send {
			switch e.To {
			case pa:
				post = append(post, mail{a, pb, e.Message})
			case pb:
				post = append(post, mail{b, pa, e.Message})
			}
		}
	}
	send(a, a.Connected(pb, false))
	for len(post) > 0 {
		m := post[0]
		post = post[1:]
		// As it arrives: on the wire and back.
		text, err := Encode(m.m)
		if err != nil {
			t.Fatal(err)
		}
		if m.m, err = Decode(text); err != nil {
			t.Fatal(err)
		}
		send(m.to, m.to.Receive(m.from, m.m))
	}
}

// waited lets so much time pass that the word of one peer is enough.
func waited(r *Replica) *Replica {
	for range sureTicks + 1 {
		r.Tick(rand.New(rand.NewPCG(1, 1)))
	}
	return r
}

// TestNobodyKnowsAnything: a daemon that knows nothing is not complete because another that knows nothing
// holds the same; it is by one that knows, or when all whom it hears know no better.
func TestNobodyKnowsAnything(t *testing.T) {
	x, y, z := simOrigin(0), simOrigin(1), simOrigin(2)
	fresh := func(self Peer) *Replica {
		r := New(Config{Self: self, Epoch: 1}, nil)
		r.Publish(content(self, 1))
		r.SetMembers(topology.View{Members: []Peer{x, y, z}})
		return r
	}
	a, b := fresh(x), fresh(y)
	meet(t, a, b, x, y)
	if a.Synced() || b.Synced() || a.ColdStart(false) || a.ColdStart(true) {
		t.Fatal("two daemons without anything take each other's word, and a third has not spoken")
	}
	// The third knows what it knew before.
	old := New(Config{Self: z, Epoch: 1, Complete: true}, []Entry{mustEntry(t, clustermesh.Record{
		Origin: simOrigin(3), Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: content(simOrigin(3), 1)})})
	old.SetMembers(topology.View{Members: []Peer{x, y, z}})
	meet(t, b, old, y, z)
	if b.Synced() {
		t.Error("one is enough at once, where there are two")
	}
	if !waited(b).Synced() || b.Records().Len() != 3 {
		t.Errorf("synced %v with %d records, after who knows has spoken", b.Synced(), b.Records().Len())
	}
	// Now b knows, too.
	meet(t, a, b, x, y)
	if !waited(a).Synced() || a.Records().Get(simOrigin(3)).Stamp.Version == 0 {
		t.Error("what one learnt does not count for the next")
	}

	// No replica has anything.
	a, b = fresh(x), fresh(y)
	c := fresh(z)
	meet(t, a, b, x, y)
	meet(t, a, c, x, z)
	if a.ColdStart(false) {
		t.Error("at once, although a seed may still be found")
	}
	if !a.ColdStart(true) || !a.Synced() {
		t.Error("every seed was found and agrees, and it waits")
	}
	meet(t, b, c, y, z)
	meet(t, b, a, y, x)
	if !waited(b).Synced() {
		t.Error("a knows that no peer knows more, and b does not believe it")
	}
}

// A build that does not say whether it is synced is believed to be.
func TestOlderBuildsAreSynced(t *testing.T) {
	r := New(Config{Self: simOrigin(0), Epoch: 1}, nil)
	if r.Receive(simOrigin(1), &Agree{}); !r.Synced() {
		t.Error("not synced")
	}
}

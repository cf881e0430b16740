package replica

import (
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// lacking is what a peer answers that does not hold what a node says in an epoch.
func lacking(o clustermesh.Origin) *Vector {
	return &Vector{Clusters: []ClusterVector{{Cluster: o.Cluster}}}
}

// A writer whose clock was ahead begins again once the clock is right, and is believed: by those
// that hold what it said before, and by those whose clock was ahead too.
func TestBeginAnew(t *testing.T) {
	self, other, ahead := simOrigin(0), simOrigin(1), simOrigin(2)
	wrong := true
	clock := func(o clustermesh.Origin, epoch uint64) time.Duration {
		if wrong {
			return 0
		}
		return present(o, epoch)
	}
	r := New(Config{Self: self, Epoch: 5000, Ahead: clock}, []Entry{stamped(t, self, 5, 1)})
	peers := map[clustermesh.Origin]*Replica{
		other: New(Config{Self: other, Epoch: 1, Ahead: present}, []Entry{stamped(t, self, 5, 1)}),
		ahead: New(Config{Self: ahead, Epoch: 1, Ahead: clock}, nil),
	}
	spread := func(out Output) {
		for _, e := range out.Send {
			peers[e.To].Receive(self, e.Message)
		}
	}
	r.SetMembers(topology.View{Members: []clustermesh.Origin{other, ahead}})
	spread(r.Publish(content(self, 2)))
	for range 2 * refusals {
		r.Receive(other, lacking(self))
	}
	if r.Refused() {
		t.Error("while its clock is ahead, it knows nothing of that")
	}
	wrong = false
	if !r.Refused() {
		t.Fatal("its clock is right, and it does not see that no peer takes what it publishes")
	}
	r.Begin(7)
	spread(r.Renew())
	for o, p := range peers {
		if rec, _ := p.Record(self); rec.Stamp != (clustermesh.Stamp{Epoch: 7, Version: 1}) {
			t.Errorf("%s holds %s", o, rec.Stamp)
		}
	}
	if r.Refused() || r.Epoch() != 7 {
		t.Errorf("it is refused: %v, in epoch %d", r.Refused(), r.Epoch())
	}
}

// A clock that is set back wrongly makes its writer's record look as if it came from the future. Others hold
// that, and would not take a lower one.
func TestOthersHoldTheFuture(t *testing.T) {
	self, other := simOrigin(0), simOrigin(1)
	holding := &Vector{Clusters: []ClusterVector{{Cluster: self.Cluster, Offers: []Offer{{Origin: self, Version: Version{Epoch: 5000, Count: 1}}}}}}
	elsewhere := &Vector{Clusters: []ClusterVector{{Cluster: "another"}}} // and of self's cluster, it holds the same
	for _, c := range []struct {
		name string
		says []Message
		want bool
	}{
		{"nothing yet", nil, false},
		{"that they lack it", []Message{lacking(self), lacking(self), lacking(self)}, true},
		{"that they lack it, once", []Message{lacking(self)}, false},
		{"that they lacked it", []Message{lacking(self), lacking(self), lacking(self), holding}, false},
		{"that they lacked it, and differ elsewhere", []Message{lacking(self), lacking(self), lacking(self), elsewhere}, false},
		{"that they lacked it, and agree", []Message{lacking(self), lacking(self), lacking(self), &Agree{}}, false},
		{"that they lack it, and may not be who they say", slices.Repeat([]Message{Doubted(lacking(self))}, 9), false},
	} {
		r := New(Config{Self: self, Epoch: 5000, Ahead: present}, nil)
		r.Publish(content(self, 1))
		for _, m := range c.says {
			r.Receive(other, m)
		}
		if r.Refused() != c.want {
			t.Errorf("others say %s: refused %v", c.name, r.Refused())
		}
	}
	r := New(Config{Self: self, Epoch: 5000, Ahead: present}, nil)
	for range 9 {
		r.Receive(other, lacking(self))
	}
	if r.Refused() {
		t.Error("it said nothing yet, and is refused")
	}
	r.Publish(content(self, 1))
	for range refusals {
		r.Receive(other, lacking(self))
	}
	if r.Receive(other, r.digest()); r.Refused() {
		t.Error("a peer that holds the same asks whether it does, and this node is refused")
	}
}

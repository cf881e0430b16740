package replica

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// far is an epoch that the receivers of these tests take for the future: all above 1,000 are.
const far = 1<<63 - 1

func present(o clustermesh.Origin, epoch uint64) time.Duration {
	if epoch > 1000 {
		return time.Hour
	}
	return 0
}

func stamped(t *testing.T, o clustermesh.Origin, epoch uint64, n int) Entry {
	t.Helper()
	e, err := NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: epoch, Version: 1}, Content: content(o, n)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A record that claims to be from the future is refused, however it comes, and its owner goes on.
func TestRecordsFromTheFuture(t *testing.T) {
	self, owner := simOrigin(0), simOrigin(1)
	forged := stamped(t, owner, far, 9)
	r := New(Config{Self: self, Epoch: 1, Ahead: present}, nil)
	r.Receive(owner, &Snapshot{Entries: []Entry{stamped(t, owner, 5, 1)}})
	out := r.Receive(simOrigin(2), &Snapshot{Entries: []Entry{forged}})
	if len(out.Changed) > 0 || len(out.Problems) != 1 || !strings.Contains(out.Problems[0].Message, "1h0m0s in the future") {
		t.Errorf("changed %v, problems %v", out.Changed, out.Problems)
	}
	if out := r.Receive(simOrigin(2), &Announce{Offers: offersOf([]Entry{forged})}); len(out.Send) > 0 {
		t.Errorf("asked for it: %v", out.Send)
	}
	if out := r.Receive(owner, &Snapshot{Entries: []Entry{stamped(t, owner, 5, 1), stamped(t, owner, 6, 2)}}); len(out.Changed) != 1 {
		t.Errorf("the owner's next record was not accepted: %+v", out)
	}
}

// What was held when a clock was set back stays, whichever clock that was: until its owner says something
// that is not from the future. It is sent to no peer.
func TestClockSetBack(t *testing.T) {
	self, owner, other := simOrigin(0), simOrigin(1), simOrigin(2)
	cluster := clustermesh.Origin{Cluster: self.Cluster}
	held := []Entry{stamped(t, owner, 5000, 1), stamped(t, cluster, 5000, 1)}
	r := New(Config{Self: self, Epoch: 7, Ahead: present}, held)
	if r.Records().Len() != 2 {
		t.Fatalf("a restart loses what is held: %v", r.Records())
	}
	r.SetMembers(topology.View{Members: []clustermesh.Origin{owner, other}})
	told := func(out Output) {
		t.Helper()
		for _, e := range out.Send {
			if s, is := e.Message.(*Snapshot); is && len(s.Entries) > 0 {
				t.Errorf("it sends %v", s.Entries)
			}
			if v, is := e.Message.(*Vector); is && len(v.Clusters) > 0 && len(v.Clusters[0].Offers) > 0 {
				t.Errorf("it offers %v", v.Clusters[0].Offers)
			}
		}
	}
	told(r.Receive(other, &Want{[]clustermesh.Origin{owner}}))
	told(r.Receive(other, &Digest{Clusters: []ClusterSum{{Cluster: owner.Cluster}}}))
	told(r.Receive(other, &Vector{Clusters: []ClusterVector{{Cluster: owner.Cluster}}}))
	if out := r.Receive(owner, &Snapshot{Entries: []Entry{stamped(t, owner, 6000, 2)}}); len(out.Changed) > 0 {
		t.Error("news from the future counts")
	}
	if out := r.Receive(other, &Announce{Offers: offersOf([]Entry{stamped(t, owner, 6, 3)})}); len(out.Send) != 1 {
		t.Errorf("what its owner says now is not asked for: %+v", out)
	}
	r.Receive(other, &Snapshot{Entries: []Entry{stamped(t, owner, 6, 3)}})
	if rec, _ := r.Record(owner); rec.Stamp.Epoch != 6 {
		t.Errorf("its owner is locked out by %s", rec.Stamp)
	}
	// Of the cluster, this node is the leader. It says the same again.
	r.PublishCluster(content(cluster, 1), 8)
	if rec, _ := r.Record(cluster); rec.Stamp.Epoch != 8 {
		t.Errorf("the leader's record has the stamp %s, and others refuse that", rec.Stamp)
	}
}

// A record that is forged is reported as that, whatever its stamp.
func TestForgedFromTheFuture(t *testing.T) {
	owner := simOrigin(1)
	forged := clustermesh.Problem{Message: "forged"}
	r := New(Config{Self: simOrigin(0), Epoch: 1, Ahead: present, Admit: func(Peer, Entry) (clustermesh.Record, clustermesh.Problem, bool) {
		return clustermesh.Record{}, forged, false
	}}, nil)
	out := r.Receive(owner, &Snapshot{Entries: []Entry{stamped(t, owner, far, 1)}})
	if len(out.Problems) != 1 || out.Problems[0] != forged {
		t.Errorf("problems %v", out.Problems)
	}
}

// No peer can drive a writer's own stamp into the future, where others would refuse it.
func TestOwnStampStaysInThePresent(t *testing.T) {
	self := simOrigin(0)
	r := New(Config{Self: self, Epoch: 5, Ahead: present}, []Entry{stamped(t, self, far, 9)})
	r.Publish(content(self, 1))
	r.Receive(simOrigin(1), &Snapshot{Entries: []Entry{stamped(t, self, far, 9)}})
	r.Receive(simOrigin(1), &Announce{Offers: offersOf([]Entry{stamped(t, self, far, 9)})})
	for range 100 {
		r.Tick(rand.New(rand.NewPCG(1, 1)))
	}
	if rec, _ := r.Record(self); rec.Stamp.Epoch != 5 || r.Epoch() != 5 {
		t.Errorf("own record has stamp %s, and the next would have epoch %d", rec.Stamp, r.Epoch())
	}
}

// An invalid version with the largest stamp does not hide the valid ones below it.
func TestRejectedVersionDoesNotBlind(t *testing.T) {
	owner := simOrigin(1)
	r := New(Config{Self: simOrigin(0), Epoch: 1}, nil)
	bad := stamped(t, owner, far, 9)
	r.Receive(owner, &Snapshot{Rejected: []Rejected{{Origin: owner, Version: bad.version, Err: clustermesh.CheckName("")}}})
	good := &Announce{Offers: offersOf([]Entry{stamped(t, owner, 5, 1)})}
	if out := r.Receive(owner, good); len(out.Send) != 1 {
		t.Errorf("a valid version was not asked for: %+v", out)
	}
	again := &Announce{Offers: offersOf([]Entry{bad})}
	if out := r.Receive(owner, again); len(out.Send) != 0 {
		t.Errorf("the rejected version was asked for at once: %+v", out)
	}
	for range rejectedTicks {
		r.Tick(rand.New(rand.NewPCG(1, 1)))
	}
	if out := r.Receive(owner, again); len(out.Send) != 1 {
		t.Errorf("the rejected version is never asked for again: %+v", out)
	}
}

package replica

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
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
	r := New(Config{Self: self, Epoch: 1, Ahead: present}, []Entry{forged}) // as an older build has saved it
	if len(r.Records()) > 0 {
		t.Errorf("loaded %v", r.Records())
	}
	r.Receive(owner, &Snapshot{Entries: []Entry{stamped(t, owner, 5, 1)}})
	out := r.Receive(simOrigin(2), &Snapshot{Entries: []Entry{forged}})
	if len(out.Changed) > 0 || len(out.Problems) != 1 || !strings.Contains(out.Problems[0].Message, "1h0m0s in the future") {
		t.Errorf("changed %v, problems %v", out.Changed, out.Problems)
	}
	if out := r.Receive(simOrigin(2), &Announce{offersOf([]Entry{forged})}); len(out.Send) > 0 {
		t.Errorf("asked for it: %v", out.Send)
	}
	if out := r.Receive(owner, &Snapshot{Entries: []Entry{stamped(t, owner, 5, 1), stamped(t, owner, 6, 2)}}); len(out.Changed) != 1 {
		t.Errorf("the owner's next record was not accepted: %+v", out)
	}
}

// Nobody can drive a writer's own stamp into the future, where others would refuse it.
func TestOwnStampStaysInThePresent(t *testing.T) {
	self := simOrigin(0)
	r := New(Config{Self: self, Epoch: 5, Ahead: present}, []Entry{stamped(t, self, far, 9)})
	r.Publish(content(self, 1))
	r.Receive(simOrigin(1), &Snapshot{Entries: []Entry{stamped(t, self, far, 9)}})
	r.Receive(simOrigin(1), &Announce{offersOf([]Entry{stamped(t, self, far, 9)})})
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
	good := &Announce{offersOf([]Entry{stamped(t, owner, 5, 1)})}
	if out := r.Receive(owner, good); len(out.Send) != 1 {
		t.Errorf("a valid version was not asked for: %+v", out)
	}
	again := &Announce{offersOf([]Entry{bad})}
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

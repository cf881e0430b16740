package replica

import (
	"math/rand/v2"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// TestPace: of an origin that writes without pause, a bounded number of versions is put in force
// between two ticks, and the newest with the next tick; other origins do not wait.
func TestPace(t *testing.T) {
	flooder, quiet, by := simOrigin(0), simOrigin(1), simOrigin(2)
	version := func(o clustermesh.Origin, n int) Entry {
		return mustEntry(t, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: uint64(n)}, Content: content(o, n)})
	}
	for how, message := range map[string]func(Entry) Message{
		"pushed":    func(e Entry) Message { return &Snapshot{Entries: []Entry{e}} },
		"announced": func(e Entry) Message { return &Announce{Offers: offersOf([]Entry{e})} },
	} {
		r := New(Config{Self: simOrigin(3), Epoch: 1}, nil)
		r.SetMembers(topology.View{Members: []Peer{flooder, quiet, by}})
		changed, sent := 0, 0
		// take answers what is asked for, with the version that the flooder has by then.
		take := func(out Output, at int) {
			for i := 0; i < len(out.Send); i++ {
				sent++
				if _, asks := out.Send[i].Message.(*Want); asks {
					out.add(r.Receive(by, &Snapshot{Entries: []Entry{version(flooder, at)}}))
				}
			}
			changed += len(out.Changed)
		}
		const last = 1000
		for n := 1; n <= last; n++ {
			take(r.Receive(by, message(version(flooder, n))), n)
		}
		if changed > 50 || sent > 3*50 {
			t.Errorf("%s: %d versions were put in force and %d messages sent before a tick", how, changed, sent)
		}
		if r.Receive(by, &Snapshot{Entries: []Entry{version(quiet, 1)}}); r.Records().Get(quiet).Stamp.Version != 1 {
			t.Errorf("%s: another origin has to wait", how)
		}
		take(r.Tick(rand.New(rand.NewPCG(1, 1))), last)
		if got := r.Records().Get(flooder).Stamp.Version; got != last {
			t.Errorf("%s: version %d is in force after a tick, want the newest", how, got)
		}
	}
}

// TestPaceOfJudging: what an origin writes too fast is not even judged. What is forged meanwhile is refused
// later, and the origin goes on.
func TestPaceOfJudging(t *testing.T) {
	flooder, by := simOrigin(0), simOrigin(2)
	const forged = 1 << 40
	judged := 0
	r := New(Config{Self: simOrigin(3), Epoch: 1, Admit: func(_ Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool) {
		judged++
		return e.Record, clustermesh.Problem{Message: "forged"}, e.Record.Stamp.Version != forged
	}}, nil)
	say := func(n uint64) Output {
		return r.Receive(by, &Snapshot{Entries: []Entry{mustEntry(t, clustermesh.Record{Origin: flooder, Stamp: clustermesh.Stamp{Epoch: 1, Version: n}, Content: content(flooder, int(n))})}})
	}
	for n := range uint64(1000) {
		say(n + 1)
	}
	if judged > paceLimit {
		t.Errorf("%d versions were judged before a tick", judged)
	}
	say(forged)
	if out := r.Tick(rand.New(rand.NewPCG(1, 1))); len(out.Problems) != 1 || out.Problems[0].Message != "forged" {
		t.Errorf("problems %v", out.Problems)
	}
	say(1001)
	if got := r.Records().Get(flooder).Stamp.Version; got != 1001 {
		t.Errorf("version %d is in force, want the one after the forged one", got)
	}
}

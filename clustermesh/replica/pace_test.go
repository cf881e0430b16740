package replica

import (
	"math/rand/v2"
	"testing"

	"strait.io/strait/clustermesh"
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
		"announced": func(e Entry) Message { return &Announce{offersOf([]Entry{e})} },
	} {
		r := New(Config{Self: simOrigin(3), Epoch: 1}, nil)
		r.SetMembers([]Peer{flooder, quiet, by})
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
		if r.Receive(by, &Snapshot{Entries: []Entry{version(quiet, 1)}}); r.Records()[quiet].Stamp.Version != 1 {
			t.Errorf("%s: another origin has to wait", how)
		}
		take(r.Tick(rand.New(rand.NewPCG(1, 1))), last)
		if got := r.Records()[flooder].Stamp.Version; got != last {
			t.Errorf("%s: version %d is in force after a tick, want the newest", how, got)
		}
	}
}

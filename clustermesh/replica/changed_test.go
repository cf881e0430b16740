package replica

import (
	"testing"

	"strait.io/strait/clustermesh"
)

// TestChanged: what is judged by the records of a cluster is judged again after each change of one,
// also if all of them were dropped meanwhile, and not after changes of others.
func TestChanged(t *testing.T) {
	refuses := false
	r := New(Config{Self: clustermesh.Origin{Cluster: "a", Node: "n1"}, Epoch: 1, Admit: func(_ Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool) {
		return e.Record, clustermesh.Problem{}, !refuses
	}}, nil)
	receive := func(c clustermesh.ClusterName, version uint64) {
		t.Helper()
		e, err := NewEntry(clustermesh.Record{Origin: clustermesh.Origin{Cluster: c, Node: "n1"}, Stamp: clustermesh.Stamp{Epoch: 1, Version: version}})
		if err != nil {
			t.Fatal(err)
		}
		if out := r.Receive(clustermesh.Origin{Cluster: c, Node: "n1"}, &Snapshot{Entries: []Entry{e}}); len(out.Changed) != 1 {
			t.Fatalf("changed: %v", out.Changed)
		}
	}
	seen := map[uint64]bool{}
	news := func(when string) {
		t.Helper()
		if now := r.Changed("b"); seen[now] {
			t.Errorf("%s: %d, as before", when, now)
		} else {
			seen[now] = true
		}
	}
	news("there is nothing")
	receive("b", 1)
	news("a record came")
	before := r.Changed("b")
	if receive("c", 1); r.Changed("b") != before {
		t.Error("a record of another cluster changed it")
	}
	refuses = true
	r.Readmit(func(c clustermesh.ClusterName) bool { return c == "b" })
	if r.Changed("b") != 0 {
		t.Error("nothing is left, and it is not 0")
	}
	refuses = false
	receive("b", 1)
	news("the same record came back")
	receive("b", 2)
	news("another version came")
}

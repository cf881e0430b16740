package replica

import (
	"testing"

	"strait.io/strait/clustermesh"
)

// TestReadmitNamesWhatItDrops: the records that are not admitted any more are named, because a file with
// the records must drop them too.
func TestReadmitNamesWhatItDrops(t *testing.T) {
	var held []Entry
	for _, n := range []clustermesh.NodeName{"n1", "n2", "n3"} {
		e, err := NewEntry(clustermesh.Record{Origin: clustermesh.Origin{Cluster: "b", Node: n}, Stamp: clustermesh.Stamp{Epoch: 1}})
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, e)
	}
	var refused clustermesh.NodeName
	r := New(Config{Self: clustermesh.Origin{Cluster: "a", Node: "n1"}, Epoch: 1, Admit: func(_ Peer, e Entry) (clustermesh.Record, clustermesh.Problem, bool) {
		return e.Record, clustermesh.Problem{}, e.Record.Origin.Node != refused
	}}, held)
	if dropped := r.Readmit(nil); len(dropped) != 0 {
		t.Errorf("dropped %v though all are admitted", dropped)
	}
	refused = "n2"
	if dropped := r.Readmit(func(c clustermesh.ClusterName) bool { return c == "a" }); len(dropped) != 0 {
		t.Errorf("dropped %v though only records of another cluster are judged again", dropped)
	}
	if dropped := r.Readmit(nil); len(dropped) != 1 || dropped[0] != held[1].Record.Origin {
		t.Errorf("dropped %v, want %s", dropped, held[1].Record.Origin)
	}
	if _, held := r.Entry(held[1].Record.Origin); held {
		t.Error("it is still held")
	}
	if e, ok := r.Entry(held[0].Record.Origin); !ok || e.Version() != held[0].Version() {
		t.Errorf("of another, %v is held", e.Version())
	}
}

package socklb

import (
	"fmt"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// Flips alone never wait: a grace period takes milliseconds, so it is awaited only for want of room.
func TestGraceIsLazy(t *testing.T) {
	f := &Fake{MaxBackends: 1000}
	for i := range 200 {
		want := []datapath.Frontend{{Addr: addr("10.96.0.1:80/TCP"), Backends: backends(fmt.Sprintf("10.0.0.%d:80", i+1))}}
		if err := problem.Strict(f.Reconcile(want, true)); err != nil {
			t.Fatal(err)
		}
	}
	if f.graces != 0 {
		t.Errorf("200 flips in 1000 slots waited %d times", f.graces)
	}
}

// What found no room is tried again when the insert of another awaited the grace period that makes room.
func TestRoomMadeByAnother(t *testing.T) {
	f := &Fake{MaxFrontends: 3, MaxBackends: 2}
	front := func(at string, to ...string) datapath.Frontend {
		return datapath.Frontend{Addr: addr(at), Backends: backends(to...)}
	}
	a, b := front("10.96.0.1:80/TCP", "10.0.0.1:80"), front("10.96.0.2:80/TCP", "10.0.0.2:80")
	moved, empty := front("10.96.0.1:80/TCP", "10.0.0.3:80"), front("10.96.0.3:80/TCP")
	for i, want := range [][]datapath.Frontend{{a, b}, {a}, {moved, empty}} {
		if err := problem.Strict(f.Reconcile(want, true)); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	checkInstalled(t, "at the end", f, []datapath.Frontend{moved, empty})
}

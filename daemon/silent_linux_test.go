package daemon

import (
	"errors"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/testutil"
)

// TestSilentWithoutTunnels: a node that boots publishes nothing before its tunnels are there, which another
// process makes: a record attracts connections. The kernel and the tunnel are real.
func TestSilentWithoutTunnels(t *testing.T) {
	testutil.NeedTun(t)
	if !testutil.Inside(t, 0) {
		return
	}
	w := newborn(t, 2, 2)
	w.d.born = time.Now()
	spoke := func() bool { _, has := w.Record(clustermesh.Origin{Cluster: "a", Node: "n1"}); return has }
	for range 3 {
		if err := w.d.apply(t.Context()); err == nil {
			t.Fatal("there are no tunnels, and no error")
		}
		if spoke() {
			t.Fatal("the node speaks, and has no tunnels")
		}
		if !testutil.Signalled(w.d.wake, 5*time.Second) {
			t.Fatal("no other turn is due")
		}
	}
	w.run(t)
	testutil.Eventually(t, 10*time.Second, func() error {
		if err := w.d.apply(t.Context()); err != nil {
			return err
		}
		if !spoke() {
			return errors.New("there are tunnels, and the node publishes nothing")
		}
		return nil
	})
	w.holds(t)
}

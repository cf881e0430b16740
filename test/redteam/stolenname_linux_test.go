package redteam

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// TestClusterNameStolen: a holder of the gossip key claims that the name of a cluster is its own, with
// another UID, as clusters in Kubernetes have one: while the owner is silent for longer than a name is
// kept, and on a machine that is new and hears the stranger first. What the cluster said stays, and its
// owner is heard when it returns.
func TestClusterNameStolen(t *testing.T) {
	if !insideWithClocks(t) {
		return
	}
	w := newWorld(t, map[string]byte{"north": northNumber})
	root := w.roots["north"]
	serves := clustermesh.Content{Exports: []clustermesh.Export{exported("default", "serve", 0)}}
	owner := func() (end func()) {
		a := w.speaks(northNumber, gossip.Config{
			Self: origin("north", "n1"), UID: "uid-north", Lead: leads(),
			Authority: &gossip.Authority{Root: &root, Node: authority.PrivateKey{northNumber}, Pins: w.pins},
		})
		a.Publish(content("n1", northNumber, northsPod))
		a.lead(serves)
		return a.end
	}
	end := owner()
	w.west.restart(0) // with a clock
	w.west.balances(pod(eastNumber), northsPod)
	alive := func(want bool) {
		t.Helper()
		w.west.shows("north", fmt.Sprint("alive: ", want), func(c api.Cluster) bool { return c.Alive > 0 == want })
	}
	alive(true)
	held := w.west.always(northsPod)
	end()
	alive(false)
	w.west.clock.Passes(2 * time.Minute) // the owner is silent for so long
	thief := w.speaks(mallory, gossip.Config{Self: origin("north", "ghost"), UID: "uid-evil"})
	thief.Publish(content("ghost", northNumber, stolen))
	isThere := func() {
		t.Helper()
		testutil.Eventually(t, patience, func() error {
			if thief.Heard()[origin("west", "n1")].IsZero() {
				return errors.New("the thief does not hear west")
			}
			return nil
		})
		time.Sleep(2 * time.Second) // it took less than one
	}
	isThere()
	w.west.balances(pod(eastNumber), northsPod)
	end = owner()
	alive(true)
	held()
	end()

	// A machine that was installed again knows no other, and hears the thief before the owner.
	w.west.stop()
	w.must(os.RemoveAll(w.west.path("state")))
	w.west.start()
	isThere()
	owner()
	w.west.balances(pod(eastNumber), northsPod)
	w.east.balances(pod(eastNumber))
	alive(true)
}

package redteam

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// TestImpostorOfTheDead: who has the gossip key and nothing else claims to be a node, in a later life
// than its own, and opens streams in its name. When the node dies, that does not make it alive. When it
// returns while the impostor is there still, it is alive, and both sides hear what the other says.
func TestImpostorOfTheDead(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	victim := origin("east", "n1")
	if n := w.west.refusedAs("identity"); n > 0 {
		t.Errorf("%d refused before there is an impostor", n)
	}
	impostor := w.attack(victim, nil, w.forge(victim, 9*time.Minute, content("n1", eastNumber, stolen)))
	impostor.Publish(content("n1", eastNumber, stolen))
	// West is there for it, and sees its streams: the attack is real.
	testutil.Eventually(t, patience, func() error {
		if impostor.Heard()[origin("west", "n1")].IsZero() {
			return errors.New("the impostor does not hear west")
		}
		if w.west.refusedAs("identity") == 0 {
			return errors.New("nothing was refused")
		}
		return nil
	})
	if !w.west.alive("east") {
		t.Error("the impostor silences the node")
	}
	w.east.stop()
	testutil.Eventually(t, patience, func() error {
		if w.west.alive("east") {
			return errors.New("the impostor keeps a daemon alive that is gone")
		}
		return nil
	})
	refused := w.west.refusedAs("identity")
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(100 * time.Millisecond) {
		if w.west.alive("east") {
			t.Fatal("the impostor made a daemon alive that is gone")
		}
	}
	if w.west.refusedAs("identity") == refused {
		t.Error("the impostor gave up, so this shows nothing")
	}
	w.west.says("STR2314", "cluster east", "east/n1", "does not prove")
	w.west.balances(pod(eastNumber)) // what the node said is held

	w.east.start()
	w.east.hears("west", 0)
	w.west.hears("east", 1)
	moved := netip.MustParseAddr("10.2.1.8")
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved)
	w.west.write("manifests/serve.yaml", manifestServe(pod(westNumber)))
	w.east.hears("west", 1)
	w.east.says("STR2314", "cluster east", "east/n1")
}

// refusedAs returns how often a daemon refused something for a reason.
func (m *member) refusedAs(why string) uint64 {
	m.w.Helper()
	s, err := m.status()
	m.w.must(err)
	return s.Refused[why]
}

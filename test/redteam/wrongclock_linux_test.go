package redteam

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

const year = 365 * 24 * time.Hour

// moved is where a pod of east goes.
var moved = netip.MustParseAddr("10.2.1.8")

// newWorldOfClocks is newWorld with a third cluster, north, which has no pods either. The returned
// function fails the test if west or north lacked all pods of east at any time.
func newWorldOfClocks(t *testing.T) (w *world, north *member, end func()) {
	t.Helper()
	w = newWorld(t, map[string]byte{"north": 4})
	north = w.member("north", 4)
	north.start()
	north.balances(pod(eastNumber))
	ends := []func(){w.west.always(pod(eastNumber), moved), north.always(pod(eastNumber), moved)}
	return w, north, func() {
		t.Helper()
		for _, end := range ends {
			end()
		}
	}
}

// restart starts a member again, with a clock that the test can set.
func (m *member) restart(ahead time.Duration) {
	m.w.Helper()
	m.stop()
	if m.clock == nil {
		m.clock = testutil.NewClock(m.w)
	}
	m.clock.Set(ahead)
	m.start()
}

// TestClockAhead: a machine whose clock is a year ahead is named by all others. What it said before stays
// in force, and the others go on. Once the clock is corrected, it is believed again, without a restart: as a
// node, and as its cluster's leader.
func TestClockAhead(t *testing.T) {
	if !insideWithClocks(t) {
		return
	}
	w, north, end := newWorldOfClocks(t)
	named := func() {
		t.Helper()
		w.west.says("STR5203", "cluster east", "from the future", "east/n1", "correct the clock")
		north.says("STR5203", "cluster east", "from the future", "east/n1")
		w.east.says("STR2309", "cluster west", "compare the clocks")
		w.east.says("STR2309", "cluster north", "compare the clocks")
	}
	w.east.restart(0)
	w.east.hears("north", 0)
	w.east.clock.Set(year) // while it runs
	named()
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.east.balances(moved)
	w.west.balances(pod(eastNumber))
	w.east.clock.Set(0)
	w.west.balances(moved)
	north.balances(moved)

	w.east.restart(year)
	named()
	w.east.write("manifests/serve.yaml", manifestServe(pod(eastNumber)))
	w.east.balances(pod(eastNumber))
	w.west.balances(moved)
	w.east.clock.Set(0)
	w.east.says("STR5204", "node east/n1", "ahead of what it shows now when straitd started", "believe this one again within seconds")
	w.west.balances(pod(eastNumber))
	north.balances(pod(eastNumber))
	w.west.hears("east", 1)
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved)
	for _, m := range []*member{w.west, w.east, north} {
		m.saysNothing()
	}
	end()
}

// TestClockBehind: a machine whose clock is a year behind says so itself. Its kernel loses nothing, also
// when the daemon is restarted, and others keep what the machine said. Once the clock is corrected, all
// goes on without another restart.
func TestClockBehind(t *testing.T) {
	if !insideWithClocks(t) {
		return
	}
	w, north, end := newWorldOfClocks(t)
	w.west.restart(0)
	w.west.hears("north", 0)
	for _, how := range []func(time.Duration){w.west.clock.Set, w.west.restart} {
		how(-year)
		w.west.says("STR5205", "node west/n1", "this machine's clock is behind, by 87", "correct this machine's clock")
		north.says("STR2309", "cluster west", "compare the clocks")
		w.west.balances(pod(eastNumber))
		w.west.clock.Set(0)
	}
	w.west.clock.Set(-year)
	w.west.restart(-year)
	w.west.says("STR5205", "this machine's clock is behind")
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	north.balances(moved) // others go on
	w.west.balances(pod(eastNumber))
	w.west.clock.Set(0)
	w.west.balances(moved)
	w.west.saysNothing()

	// The one that has the pods.
	w.east.restart(-year)
	w.east.says("STR5205", "node east/n1", "this machine's clock is behind")
	w.east.write("manifests/serve.yaml", manifestServe(pod(eastNumber)))
	w.east.balances(pod(eastNumber))
	w.west.balances(moved)
	w.east.clock.Set(0)
	w.west.balances(pod(eastNumber))
	north.balances(pod(eastNumber))
	for _, m := range []*member{w.west, w.east, north} {
		m.saysNothing()
	}
	end()
}

// TestClockOfFollower: a machine without the root learns from the one that signs for it that a clock is
// wrong. It does not ask again and again, for statements that cannot be better. Once the clock is corrected,
// it is believed again, without a restart.
func TestClockOfFollower(t *testing.T) {
	if !insideWithClocks(t) {
		return
	}
	w, f := newWorldOfThree(t)
	// While the follower restarts, which takes its time on a busy machine, it is probed at its stated address.
	// Its machine is up, so something must answer there, or its pods are withdrawn.
	w.hasAddress(machine(followerNumber))
	followers, other := netip.MustParseAddr("10.2.3.7"), netip.MustParseAddr("10.2.3.8")
	end := w.west.always(followers, other)
	for _, by := range []time.Duration{year, -year} {
		f.restart(by)
		f.says("STR5206", "node east/n3", "this machine's clock is 8760h", map[bool]string{true: "ahead of", false: "behind"}[by > 0])
		asked := map[time.Time]bool{}
		for began := time.Now(); time.Since(began) < 4*time.Second; time.Sleep(50 * time.Millisecond) {
			info, err := os.Stat(f.path("state/statement.cbor"))
			w.must(err)
			asked[info.ModTime()] = true
		}
		if len(asked) > 2 {
			t.Errorf("%s ahead: it asked for %d statements in 4 s", by, len(asked)-1)
		}
		w.west.balances(pod(eastNumber), followers)
		f.clock.Set(0)
		followers, other = other, followers
		f.write("manifests/serve.yaml", strings.Replace(manifestServe(followers), "nodeName: n1", "nodeName: n3", 1))
		w.west.balances(pod(eastNumber), followers)
		w.west.hearsNodes("east", 2)
	}
	for _, m := range []*member{w.west, w.east, f} {
		m.saysNothing()
	}
	end()
}

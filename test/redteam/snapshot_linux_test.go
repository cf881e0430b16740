package redteam

import (
	"net/netip"
	"os"
	"testing"
	"time"
)

const week = 7 * 24 * time.Hour

// snapshot copies what the machine's daemon has on disk. The returned function brings that back, and
// starts the daemon, on a clock that is so much ahead of the test's.
func (m *member) snapshot() (restore func(ahead time.Duration)) {
	m.w.Helper()
	old := m.w.TempDir() + "/state"
	m.w.copy(m.path("state"), old)
	return func(ahead time.Duration) {
		m.w.Helper()
		m.stop()
		m.w.must(os.RemoveAll(m.path("state")))
		m.w.copy(old, m.path("state"))
		m.clock.Set(ahead)
		m.start()
	}
}

// TestSnapshot: machines are restored from snapshots of last week, first with a clock that is right, then
// with the snapshot's. They come back and are believed, at the latest when the clock is corrected. What
// they knew last week comes into force nowhere else.
func TestSnapshot(t *testing.T) {
	if !insideWithClocks(t) {
		return
	}
	w, north := newWorldWithNorth(t)
	all := []*member{w.west, w.east, north}
	for _, m := range all { // with clocks, and on disk what the others say
		m.restart(0)
	}
	for _, m := range all {
		m.balances(pod(eastNumber), northsPod)
		m.stop()
	}
	east, west := w.east.snapshot(), w.west.snapshot()

	// A week goes by.
	for _, m := range all {
		m.restart(week)
	}
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	for _, m := range all {
		m.balances(moved, northsPod)
	}
	again := netip.MustParseAddr("10.2.1.9")
	ends := []func(){w.west.always(northsPod), north.always(moved, again)}
	old := north.never(pod(eastNumber))

	// The machine that has no pods of it would pass on what it knew.
	west(week)
	w.west.balances(moved, northsPod)
	west(0)
	w.west.says("STR5203", "cluster east", "from the future", "or this one's")
	w.west.clock.Set(week)
	w.west.balances(moved, northsPod)

	// The one that has them has older stamps on disk than all others.
	east(week)
	w.east.write("manifests/serve.yaml", manifestServe(again))
	w.west.balances(again, northsPod)
	north.balances(again, northsPod)
	east(0)
	w.east.says("STR5203", "cluster north", "from the future", "or this one's")
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.east.balances(moved, northsPod)
	north.balances(again, northsPod)
	w.east.clock.Set(week)
	w.west.balances(moved, northsPod)
	north.balances(moved, northsPod)
	old()
	for _, end := range ends {
		end()
	}
	for _, m := range all {
		m.saysNothing()
	}
}

package replica

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
)

// paceLimit is how many versions of an origin's record are put in force between two ticks. An origin
// that writes faster costs all nodes a turn for each version. Nodes write a few a second at most.
const paceLimit = 50

// pace bounds how fast the record of each origin can change. What comes above the limit waits for
// the next tick, and only the newest of it.
type pace struct {
	// taken counts the versions put in force since the last tick.
	taken map[clustermesh.Origin]int
	// waiting are what to fetch or receive at the next tick.
	waiting map[clustermesh.Origin]waiting
}

// waiting is a newer version, and where it is: in entry, or with the peer that offered it.
type waiting struct {
	from    Peer
	version Version
	entry   *Entry
	doubted bool
}

func newPace() pace {
	return pace{taken: map[clustermesh.Origin]int{}, waiting: map[clustermesh.Origin]waiting{}}
}

// full reports whether a newer version of an origin's record has to wait.
func (p pace) full(o clustermesh.Origin) bool { return p.taken[o] >= paceLimit }

// hold makes a version wait, unless a newer one does. What a doubted peer has never takes the place of
// what another one has.
func (p pace) hold(o clustermesh.Origin, w waiting) {
	was, any := p.waiting[o]
	if !any || was.doubted && !w.doubted || was.doubted == w.doubted && was.version.Compare(w.version) < 0 {
		p.waiting[o] = w
	}
}

// tickPace begins to count again, receives what waited here, and asks for what waited elsewhere.
func (r *Replica) tickPace() (out Output) {
	due := r.pace.waiting
	r.pace = newPace()
	for _, o := range slices.SortedFunc(maps.Keys(due), clustermesh.Origin.Compare) {
		w := due[o]
		if w.entry != nil {
			out.add(r.receiveSnapshot(w.from, &Snapshot{Entries: []Entry{*w.entry}}, w.doubted))
		} else {
			out.add(r.receiveOffers(w.from, []Offer{{Origin: o, Version: w.version}}, w.doubted))
		}
	}
	return out
}

package writer

import (
	"sync"
	"time"

	"strait.io/strait/clustermesh"
)

const (
	// many services that are news at once are a backlog: a first leader's imports, or all of them
	// after a cluster has joined.
	many = 100
	// share is how many of so many services that are taken come from the backlog, if changes wait too: one.
	share = 4
)

// backlog orders the services that wait to be written. What changes one at a time goes before what
// came all at once, so that a change to one Service does not wait behind ten thousand imports; of
// the backlog a share goes on even then. It is the storage of the queue, which calls Push, Touch,
// Len and Pop; the other methods may be called at any time.
type backlog struct {
	mu      sync.Mutex
	changes []clustermesh.ServiceName
	// later are the backlog, first in first out, and with it those that have moved to changes since.
	later []clustermesh.ServiceName
	waits map[clustermesh.ServiceName]bool // those of later that are still to be taken from there
	bulk  map[clustermesh.ServiceName]bool // those that go into the backlog when they are pushed
	turn  int

	// left are the services of the backlog that were not tried yet, total how many there were, since when it began.
	left  map[clustermesh.ServiceName]bool
	total int
	since time.Time

	unwritten map[clustermesh.ServiceName]bool // those that wait, are in hand, or could not be written
}

func newBacklog() *backlog {
	b := &backlog{}
	b.reset()
	return b
}

// reset empties it. It makes new maps: one that held ten thousand names keeps their memory for as long as it lives.
func (b *backlog) reset() {
	b.waits, b.bulk = map[clustermesh.ServiceName]bool{}, map[clustermesh.ServiceName]bool{}
	b.left, b.unwritten = map[clustermesh.ServiceName]bool{}, map[clustermesh.ServiceName]bool{}
	b.changes, b.later = nil, nil
}

// expect says which services are about to be added at once.
func (b *backlog) expect(names []clustermesh.ServiceName, now time.Time) {
	if len(names) <= many {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.left) == 0 {
		b.total, b.since = 0, now
	}
	for _, s := range names {
		b.bulk[s] = true
		if !b.left[s] {
			b.left[s] = true
			b.total++
		}
	}
}

// among reports a service of the backlog that was not tried yet.
func (b *backlog) among(s clustermesh.ServiceName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left[s]
}

// tried notes that a service was written, or could not be. If it was news again meanwhile, the queue
// pushes it after this.
func (b *backlog) tried(s clustermesh.ServiceName, written bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.left, s)
	if written {
		delete(b.unwritten, s)
	}
	if len(b.unwritten) == 0 && len(b.bulk) == 0 {
		b.reset() // nothing waits
	}
}

// progress says how much of the backlog is done.
func (b *backlog) progress() Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.left) == 0 {
		return Progress{}
	}
	return Progress{Done: b.total - len(b.left), Total: b.total, Began: b.since}
}

// unfinished is how many services are not written.
func (b *backlog) unfinished() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.unwritten)
}

// Push implements workqueue.Queue.
func (b *backlog) Push(s clustermesh.ServiceName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unwritten[s] = true
	if !b.bulk[s] {
		b.changes = append(b.changes, s)
		return
	}
	delete(b.bulk, s)
	b.waits[s] = true
	b.later = append(b.later, s)
}

// Touch implements workqueue.Queue: a service that waits is news again.
func (b *backlog) Touch(s clustermesh.ServiceName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bulk[s] {
		delete(b.bulk, s)
		return
	}
	if b.waits[s] {
		delete(b.waits, s)
		b.changes = append(b.changes, s)
	}
}

// Len implements workqueue.Queue.
func (b *backlog) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.changes) + len(b.waits)
}

// Pop implements workqueue.Queue. There is a service to take.
func (b *backlog) Pop() (s clustermesh.ServiceName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	if len(b.waits) == 0 || len(b.changes) > 0 && b.turn%share != 0 {
		s, b.changes = b.changes[0], b.changes[1:]
		return s
	}
	for {
		s, b.later = b.later[0], b.later[1:]
		if b.waits[s] {
			delete(b.waits, s)
			return s
		}
	}
}

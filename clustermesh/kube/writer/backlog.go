package writer

import (
	"sync"
	"time"

	"strait.io/strait/clustermesh"
)

const (
	// many is the number of services above which services queued at once are a backlog: a first
	// leader's imports, or all of them after a cluster has joined.
	many = 100
	// share: while changes wait too, one of every share services is taken from the backlog.
	share = 4
)

// backlog orders the services that wait to be written. Services that change one at a time go before
// those that were queued all at once, so that a change to one Service does not wait behind ten
// thousand imports. Even so, a share of the writes always goes to the backlog. It is the storage of
// the queue, which calls Push, Touch, Len and Pop; the other methods can be called at any time.
type backlog struct {
	mu      sync.Mutex
	changes []clustermesh.ServiceName
	// later is the backlog, first in first out. It still holds services that have moved to changes.
	later []clustermesh.ServiceName
	waits map[clustermesh.ServiceName]bool // those in later that have not moved to changes
	bulk  map[clustermesh.ServiceName]bool // those that will go into the backlog when pushed
	turn  int

	// left are the services of the backlog that have not been tried yet, total is how many there
	// were, and since is when the backlog began.
	left  map[clustermesh.ServiceName]bool
	total int
	since time.Time

	// unwritten are the services that wait, are being written, or could not be written.
	unwritten map[clustermesh.ServiceName]bool
}

func newBacklog() *backlog {
	b := &backlog{}
	b.reset()
	return b
}

// reset empties the backlog. It makes new maps, because a map that held ten thousand names never
// gives their memory back.
func (b *backlog) reset() {
	b.waits, b.bulk = map[clustermesh.ServiceName]bool{}, map[clustermesh.ServiceName]bool{}
	b.left, b.unwritten = map[clustermesh.ServiceName]bool{}, map[clustermesh.ServiceName]bool{}
	b.changes, b.later = nil, nil
}

// expect announces the services that are about to be queued at once. More than many are a backlog.
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

// among reports whether a service is part of the backlog and has not been tried yet.
func (b *backlog) among(s clustermesh.ServiceName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left[s]
}

// tried notes that a service was written, or could not be. If it was queued again meanwhile, the
// queue pushes it after this call.
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

// untried notes that a service could not be tried, and will be queued again: where it was, if that is the
// backlog.
func (b *backlog) untried(s clustermesh.ServiceName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left[s] {
		b.bulk[s] = true
	}
}

// progress returns how much of the backlog is done; zero if all of it is.
func (b *backlog) progress() Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.left) == 0 {
		return Progress{}
	}
	return Progress{Done: b.total - len(b.left), Total: b.total, Began: b.since}
}

// unfinished returns how many services are not written.
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

// Touch implements workqueue.Queue: a service that waits was queued again.
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

// Pop implements workqueue.Queue. It is called only if Len is not 0.
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

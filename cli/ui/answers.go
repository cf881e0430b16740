package ui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const (
	// fresh is for how long a view needs no newer one, at least. All pages share it.
	fresh = 900 * time.Millisecond
	// rest is how much longer daemons are left alone than it took to make a view: views of many services
	// are large.
	rest = 2
	// patience is how long a request waits for a newer view if there is one already.
	patience = 1500 * time.Millisecond
	// maxKept is how many views are kept, and unused is for how long one is kept that no page asks for.
	maxKept = 200
	unused  = 2 * time.Minute
)

// answers keeps the last of each view. A view is made when a page asks for it, so that without pages
// nothing is asked.
type answers struct {
	now     func() time.Time
	mu      sync.Mutex
	entries map[string]*entry // by the request
}

// kept is the last of a view, and why there is no newer one.
type kept struct {
	view json.RawMessage // nil if there was none
	tag  string          // that tells one content from another
	came time.Time
	rest time.Duration // for which no newer one is made
	err  error
}

type entry struct {
	kept
	used    time.Time
	next    time.Time     // when a newer one is wanted
	running chan struct{} // closed when what is being made is there; nil if nothing is
}

// get returns a view that is fresh, or the last one if it takes too long to make another.
func (a *answers) get(ctx context.Context, key string, produce func() (any, error)) kept {
	a.mu.Lock()
	e := a.entry(key)
	if e.running == nil && !a.now().Before(e.next) {
		e.running = newRun(a, e, produce)
	}
	running, has := e.running, e.view != nil
	a.mu.Unlock()
	if running != nil {
		var late <-chan time.Time
		if has {
			late = time.After(patience)
		}
		select {
		case <-running:
		case <-late:
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return e.kept
}

// entry returns that of a key. The caller holds the lock.
func (a *answers) entry(key string) *entry {
	now := a.now()
	e := a.entries[key]
	if e == nil {
		for k, old := range a.entries {
			if old.running == nil && (now.Sub(old.used) > unused || len(a.entries) >= maxKept) {
				delete(a.entries, k)
			}
		}
		e = &entry{}
		a.entries[key] = e
	}
	e.used = now
	return e
}

// newRun makes a view, and closes the channel when it is kept.
func newRun(a *answers, e *entry, produce func() (any, error)) chan struct{} {
	done, began := make(chan struct{}), a.now()
	go func() {
		view, tag, err := encoded(produce())
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.now()
		if e.err = err; err == nil {
			e.view, e.tag, e.came = view, tag, now
		}
		e.rest = max(fresh, rest*now.Sub(began))
		e.next, e.running = now.Add(e.rest), nil
		close(done)
	}()
	return done
}

func encoded(view any, err error) (text json.RawMessage, tag string, _ error) {
	if err != nil {
		return nil, "", err
	}
	if text, err = json.Marshal(view); err != nil {
		return nil, "", fmt.Errorf("encode the view: %w", err)
	}
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:8]), nil
}

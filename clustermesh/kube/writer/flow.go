package writer

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// flowMin, flowStart and flowMax are how many requests may be under way at a time: at least, at first, at most.
	flowMin, flowStart, flowMax = 1, 8, 32
	// flowStep is the time between two raises of the bound by one, and between two cuts: what is
	// refused meanwhile was sent before the first took effect.
	flowStep = time.Second
)

// flow bounds how many requests are under way at a time by what the API server can take. There is
// no limit per second: the bound rises while it is reached, and 429, by which the API server's
// priority and fairness refuses, halves it. client-go sends what was refused again after the time
// that the API server asks for, and holds no place here while it waits.
type flow struct {
	mu    sync.Mutex
	freed *sync.Cond
	busy  int
	limit int
	// raised and cut are when the bound was last raised and halved.
	raised, cut time.Time
}

func newFlow() *flow {
	f := &flow{limit: flowStart}
	f.freed = sync.NewCond(&f.mu)
	return f
}

// bounded is a transport whose writes are bounded by a flow. Reads are not: lists and watches last.
type bounded struct {
	*flow
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return b.next.RoundTrip(r)
	}
	if err := b.enter(r.Context()); err != nil {
		return nil, err
	}
	answer, err := b.next.RoundTrip(r)
	b.leave(answer)
	return answer, err
}

func (f *flow) enter(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.freed.Broadcast()
	})
	defer stop()
	for f.busy >= f.limit && ctx.Err() == nil {
		f.freed.Wait()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.busy++
	return nil
}

// leave takes the answer of a request that is over, nil if there was none.
func (f *flow) leave(answer *http.Response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, full := time.Now(), f.busy >= f.limit
	f.busy--
	switch {
	case answer == nil: // says nothing of how much the API server can take
	case answer.StatusCode == http.StatusTooManyRequests:
		if now.Sub(f.cut) >= flowStep {
			f.limit, f.cut, f.raised = max(flowMin, f.limit/2), now, now
		}
	case full && answer.StatusCode < http.StatusInternalServerError && now.Sub(f.raised) >= flowStep:
		f.limit, f.raised = min(flowMax, f.limit+1), now
	}
	f.freed.Broadcast()
}

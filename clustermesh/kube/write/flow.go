package write

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// MaxRequests is the most requests that are sent at once; flowMin and flowStart are the smallest
	// and the first bound.
	MaxRequests        = 32
	flowMin, flowStart = 1, 8
	// flowStep is the least time between two raises of the bound, and between two cuts: requests
	// refused soon after a cut were sent before it took effect.
	flowStep = time.Second
	// writeWithin bounds the wait for an API server that does not answer a write. The API server's own
	// bound is as long by default.
	writeWithin = time.Minute
)

// flow bounds the number of concurrent requests by what the API server can take. There is no limit
// per second, except for the slices of one service; see pace. The bound rises by one while it is
// reached; a 429, with which the API server's priority and fairness refuses a request, halves it.
// client-go retries a refused request after the time that the API server asks for, and takes no slot
// here while it waits.
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

// bounded is a transport whose writes are bounded by a flow. Reads are not, because lists and
// watches take long.
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
	ctx, cancel := context.WithTimeout(r.Context(), writeWithin)
	answer, err := b.next.RoundTrip(r.WithContext(ctx))
	b.leave(answer)
	if err != nil || answer.Body == nil {
		cancel()
	} else {
		answer.Body = whole{answer.Body, cancel}
	}
	return answer, err
}

// whole ends a request's context when its answer has been read.
type whole struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (w whole) Close() error {
	defer w.cancel()
	return w.ReadCloser.Close()
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

// leave notes that a request has ended, and adjusts the bound by its answer; nil if there was none.
func (f *flow) leave(answer *http.Response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, full := time.Now(), f.busy >= f.limit
	f.busy--
	switch {
	case answer == nil: // no sign of how much the API server can take
	case answer.StatusCode == http.StatusTooManyRequests:
		if now.Sub(f.cut) >= flowStep {
			f.limit, f.cut, f.raised = max(flowMin, f.limit/2), now, now
		}
	case full && answer.StatusCode < http.StatusInternalServerError && now.Sub(f.raised) >= flowStep:
		f.limit, f.raised = min(MaxRequests, f.limit+1), now
	}
	f.freed.Broadcast()
}

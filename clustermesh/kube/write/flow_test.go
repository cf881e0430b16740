package write

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slow is an API server that takes a while for each request, and refuses those beyond what it can take.
type slow struct {
	takes      time.Duration
	room       int64
	busy, most atomic.Int64

	denied, served atomic.Int64
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	n := s.busy.Add(1)
	defer s.busy.Add(-1)
	if n > s.room {
		s.denied.Add(1)
		return &http.Response{StatusCode: http.StatusTooManyRequests}, nil
	}
	s.most.Store(max(s.most.Load(), n))
	time.Sleep(s.takes)
	s.served.Add(1)
	return &http.Response{StatusCode: http.StatusCreated}, nil
}

func post(ctx context.Context, f bounded) (*http.Response, error) {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.invalid/", nil)
	return f.RoundTrip(r)
}

// storm sends requests by so many workers for so long.
func storm(t *testing.T, f bounded, workers int, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var g sync.WaitGroup
	for range workers {
		g.Go(func() {
			for ctx.Err() == nil {
				wait := 10 * time.Millisecond
				if answer, err := post(ctx, f); err == nil && answer.StatusCode == http.StatusTooManyRequests {
					wait = time.Second // as client-go does, by Retry-After
				}
				time.Sleep(wait)
			}
		})
	}
	g.Wait()
}

// An API server that takes everything gets as much as there may be, one that refuses gets about what it takes: few refusals
// for what it serves.
func TestFlowFollowsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := &slow{takes: 10 * time.Millisecond, room: 1000}
		storm(t, bounded{newFlow(), free}, 50, 40*time.Second)
		if free.most.Load() != MaxRequests {
			t.Errorf("%d at a time of an API server that takes all, want %d", free.most.Load(), MaxRequests)
		}
		tight := &slow{takes: 10 * time.Millisecond, room: 5}
		f := bounded{newFlow(), tight}
		storm(t, f, 50, 30*time.Second)
		denied, served := tight.denied.Load(), tight.served.Load()
		if f.limit > 10 || tight.most.Load() != 5 || denied*10 > served {
			t.Errorf("limit %d, at most %d at a time of an API server that takes 5; %d denied, %d served", f.limit, tight.most.Load(), denied, served)
		}
	})
}

// One cut for what was sent at once; the bound never falls below one, and a request that is not let in ends with its context.
func TestFlowCutsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := bounded{newFlow(), &slow{}}
		for range 5 {
			if _, err := post(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		if f.limit != flowStart/2 {
			t.Errorf("limit %v after five refusals at once", f.limit)
		}
		for range 10 {
			time.Sleep(flowStep)
			if _, err := post(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		if f.limit != flowMin {
			t.Errorf("limit %v after many refusals", f.limit)
		}
		f.next = &slow{takes: time.Minute, room: 1}
		defer time.Sleep(time.Minute)
		go func() { _, _ = post(t.Context(), f) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := post(ctx, f); err == nil {
			t.Error("a second request was let in")
		}
		r, _ := http.NewRequest(http.MethodGet, "http://api.invalid/", nil)
		f.next = &slow{room: 1}
		if _, err := f.RoundTrip(r); err != nil {
			t.Errorf("a read waits: %v", err)
		}
	})
}

// TestWriteWithoutAnAnswer: a write ends although the API server does not answer it. A read does not: watches take
// long. The context of a write that is answered lives until the answer has been read.
func TestWriteWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := bounded{newFlow(), roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		start := time.Now()
		if _, err := post(t.Context(), f); err == nil || time.Since(start) != writeWithin || f.busy != 0 {
			t.Errorf("after %v: %v, %d busy", time.Since(start), err, f.busy)
		}
		read, cancel := context.WithTimeout(t.Context(), 2*writeWithin)
		defer cancel()
		start = time.Now()
		r, _ := http.NewRequestWithContext(read, http.MethodGet, "http://api.invalid/", nil)
		if _, err := f.RoundTrip(r); err == nil || time.Since(start) != 2*writeWithin {
			t.Errorf("a read ended after %v: %v", time.Since(start), err)
		}
		var sent context.Context
		f.next = roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = r.Context()
			return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody}, nil
		})
		answer, err := post(t.Context(), f)
		if err != nil || sent.Err() != nil {
			t.Fatalf("%v, %v", err, sent.Err())
		}
		if err := answer.Body.Close(); err != nil || sent.Err() == nil {
			t.Errorf("the answer is read: %v, %v", err, sent.Err())
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

package writer

import (
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"strait.io/strait/clustermesh"
)

const (
	// rewriteBurst is how many times in a row the derived slices of a service are rewritten at once:
	// a fail-over and its return, and some more. Then it is one time per rewriteEvery. Each rewrite
	// makes every kube-proxy and gateway of the cluster rewrite its rules for the Service.
	rewriteBurst = 5
	rewriteEvery = time.Second
)

// How a service fares is a condition, which is written again as often as that changes, within these
// bounds: a few times at once, then one time per restateEvery.
const (
	restateBurst = 5
	restateEvery = 10 * time.Second
)

// Of what changed in these conditions, people get Events: a few at once and then one per newsEvery for each
// service, and so many of all services. They come in pairs: of an export or import, and of its Service.
// What is left out is not made up for: the conditions have it.
const (
	newsBurst    = 5
	newsEvery    = 5 * time.Minute
	allNewsBurst = 100
	allNewsEvery = 2 * time.Second
)

// pace bounds how often something is done, for each service.
type pace struct {
	every time.Duration
	burst int
	clock clock

	mu     sync.Mutex
	limits map[clustermesh.ServiceName]flowcontrol.RateLimiter
}

// newPace lets a service do something so many times in a row, and then once in a while.
func newPace(every time.Duration, burst int, clock clock) *pace {
	return &pace{every: every, burst: burst, clock: clock, limits: map[clustermesh.ServiceName]flowcontrol.RateLimiter{}}
}

// clock tells the time to limiters; it is time.Now but in tests.
type clock func() time.Time

// Now implements flowcontrol.Clock.
func (c clock) Now() time.Time { return c() }

// Since implements flowcontrol.Clock.
func (c clock) Since(t time.Time) time.Duration { return c().Sub(t) }

// Sleep implements flowcontrol.Clock. Nothing here waits for a limiter.
func (c clock) Sleep(time.Duration) {}

// perSecond is a rate of once in a while.
func perSecond(every time.Duration) float32 { return float32(time.Second) / float32(every) }

// take reports whether a service can do it now, and counts that if so.
func (p *pace) take(s clustermesh.ServiceName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limits[s]
	if l == nil {
		l = flowcontrol.NewTokenBucketRateLimiterWithClock(perSecond(p.every), p.burst, p.clock)
		p.limits[s] = l
	}
	return l.TryAccept()
}

// newsBounds bounds how many Events there are about how services fare.
type newsBounds struct {
	each *pace
	all  flowcontrol.RateLimiter
}

func newNewsBounds(c clock) newsBounds {
	return newsBounds{newPace(newsEvery, newsBurst, c), flowcontrol.NewTokenBucketRateLimiterWithClock(perSecond(allNewsEvery), allNewsBurst, c)}
}

// take reports whether a service can have an Event now, and counts that if so.
func (n newsBounds) take(s clustermesh.ServiceName) bool { return n.each.take(s) && n.all.TryAccept() }

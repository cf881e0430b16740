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

// pace bounds how often derived slices are rewritten, for each service.
type pace struct {
	mu     sync.Mutex
	limits map[clustermesh.ServiceName]flowcontrol.RateLimiter
}

func newPace() *pace {
	return &pace{limits: map[clustermesh.ServiceName]flowcontrol.RateLimiter{}}
}

// take reports whether a service's slices can be rewritten now, and counts that if so.
func (p *pace) take(s clustermesh.ServiceName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limits[s]
	if l == nil {
		l = flowcontrol.NewTokenBucketRateLimiter(float32(time.Second)/float32(rewriteEvery), rewriteBurst)
		p.limits[s] = l
	}
	return l.TryAccept()
}

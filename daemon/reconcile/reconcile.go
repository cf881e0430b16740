// Package reconcile runs the loop that makes one thing match another: it coalesces triggers,
// applies, retries with back-off, and resyncs.
//
// Input is a trigger channel and an idempotent apply function; output is calls of that function,
// one at a time. It must not know what is applied.
package reconcile

import (
	"context"
	"math/rand/v2"
	"time"

	"strait.io/strait/internal/notify"
)

// Config tunes a loop. Zero fields take the defaults named beside them.
type Config struct {
	// Quiet is how long triggers must pause before apply is called; default 5 ms.
	Quiet time.Duration
	// MaxWait bounds that wait in a storm of triggers; default 50 ms. The wait is shorter after an apply
	// that was short; see storm.
	MaxWait time.Duration
	// Resync is how long after the last call apply is called again without a trigger; default 30 s.
	Resync time.Duration
	// RetryMin and RetryMax bound the back-off after an error; defaults 100 ms and 10 s.
	RetryMin, RetryMax time.Duration
	// Jitter returns a number in [0,1) to spread retries; default rand.Float64.
	Jitter func() float64
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Quiet, 5*time.Millisecond)
	def(&c.MaxWait, 50*time.Millisecond)
	def(&c.Resync, 30*time.Second)
	def(&c.RetryMin, 100*time.Millisecond)
	def(&c.RetryMax, 10*time.Second)
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	return c
}

// Run calls apply once at the start, then after every trigger, after an error, and every Resync,
// until ctx is done. Calls never overlap. Apply must be idempotent. An error only makes Run call it
// again; apply does its own logging.
func Run(ctx context.Context, c Config, trigger <-chan struct{}, apply func(context.Context) error) {
	c = c.withDefaults()
	failures := 0
	for {
		next, began := c.Resync, time.Now()
		if err := apply(ctx); err != nil {
			next = c.backoff(failures)
			failures++
		} else {
			failures = 0
		}
		if !notify.Await(ctx, trigger, next, c.Quiet, c.storm(time.Since(began))) {
			return
		}
	}
}

// stormShare is the part of the time that apply takes in a storm of triggers: 1 of stormShare+1.
const stormShare = 4

// storm returns how long to wait at most for a pause of the triggers, after an apply that took so long.
// One origin that writes without pause makes a storm for all, and delays what others write.
func (c Config) storm(took time.Duration) time.Duration {
	return min(c.MaxWait, max(c.Quiet, stormShare*took))
}

// backoff doubles from RetryMin to RetryMax, minus a jitter of up to a quarter.
func (c Config) backoff(failures int) time.Duration {
	d := c.RetryMin << min(failures, 20)
	if d <= 0 || d > c.RetryMax {
		d = c.RetryMax
	}
	return d - time.Duration(c.Jitter()*float64(d)/4)
}

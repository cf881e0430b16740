package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Order is a line to a client: it starts or stops a series of calls.
type Order struct {
	ID int `json:"id"`
	// Target is the URL to call, as Do takes it.
	Target string `json:"target,omitempty"`
	// Calls is how many calls to make; 0 means until stopped.
	Calls int `json:"calls,omitempty"`
	// EveryMS is the time in milliseconds from the start of one call to the start of the next, even
	// if the first has not ended yet.
	EveryMS int `json:"everyMS,omitempty"`
	// Stop stops the order with this ID. Calls under way still finish.
	Stop bool `json:"stop,omitempty"`
}

// Report is a line from a client: a finished call, or the end of an order.
type Report struct {
	ID   int   `json:"id"`
	Call *Call `json:"call,omitempty"`
	Done bool  `json:"done,omitempty"`
}

// RunClient carries out the orders that it reads from in, and writes reports to out, until in ends.
func RunClient(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	c := &client{out: json.NewEncoder(out), stop: map[int]context.CancelFunc{}}
	defer c.work.Wait()
	defer cancel()
	lines := json.NewDecoder(bufio.NewReader(in))
	for {
		var o Order
		if err := lines.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read order: %w", err)
		}
		if o.Stop {
			if stop := c.stop[o.ID]; stop != nil {
				stop()
			}
			continue
		}
		// Stopping an order starts no further calls but does not cancel those under way.
		orders, stop := context.WithCancel(ctx)
		c.stop[o.ID] = stop
		c.work.Go(func() { c.carryOut(orders, ctx, o) })
	}
}

type client struct {
	work sync.WaitGroup
	stop map[int]context.CancelFunc

	mu  sync.Mutex
	out *json.Encoder
}

// carryOut starts calls at a steady pace until more is cancelled. calls is the context of each
// call.
func (c *client) carryOut(more, calls context.Context, o Order) {
	var running sync.WaitGroup
	tick := time.NewTicker(max(time.Millisecond, time.Duration(o.EveryMS)*time.Millisecond))
	defer tick.Stop()
	for made := 0; (o.Calls == 0 || made < o.Calls) && more.Err() == nil; made++ {
		running.Go(func() {
			done := Do(calls, o.Target)
			if calls.Err() == nil {
				c.report(Report{ID: o.ID, Call: &done})
			}
		})
		select {
		case <-tick.C:
		case <-more.Done():
		}
	}
	running.Wait()
	c.report(Report{ID: o.ID, Done: true})
}

func (c *client) report(r Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.Encode(r) // fails if the demo has exited; the report does not matter then
}

package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// ErrGone reports that a client's process has ended.
var ErrGone = errors.New("the client is gone")

// Driver controls a client process: it sends orders and collects reports.
type Driver struct {
	// Name is where the client runs.
	Name string

	mu     sync.Mutex
	orders io.Writer
	next   int
	runs   map[int]*Run
	gone   bool
}

// NewDriver returns a Driver that writes orders to a client's stdin. Reports arrive only while
// Collect runs.
func NewDriver(name string, orders io.Writer) *Driver {
	return &Driver{Name: name, orders: orders, runs: map[int]*Run{}}
}

// Collect reads reports until the client exits. After that every run is done.
func (d *Driver) Collect(reports io.Reader) error {
	defer d.end()
	lines := json.NewDecoder(bufio.NewReader(reports))
	for {
		var r Report
		if err := lines.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read report of client %s: %w", d.Name, err)
		}
		d.mu.Lock()
		run := d.runs[r.ID]
		if r.Done {
			delete(d.runs, r.ID)
		}
		d.mu.Unlock()
		if run == nil {
			continue
		}
		if r.Call != nil {
			run.add(*r.Call)
		}
		if r.Done {
			close(run.done)
		}
	}
}

func (d *Driver) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
	for _, run := range d.runs {
		run.lost = true
		close(run.done)
	}
	d.runs = nil
}

// Start orders calls to target.
func (d *Driver) Start(o Order) (*Run, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return nil, fmt.Errorf("start calls from %s: %w", d.Name, ErrGone)
	}
	d.next++
	o.ID = d.next
	run := &Run{driver: d, Order: o, done: make(chan struct{})}
	d.runs[o.ID] = run
	if err := d.send(o); err != nil {
		delete(d.runs, o.ID)
		return nil, err
	}
	return run, nil
}

func (d *Driver) send(o Order) error {
	if err := json.NewEncoder(d.orders).Encode(o); err != nil {
		return fmt.Errorf("send order to client %s: %w", d.Name, err)
	}
	return nil
}

// Run is a series of calls.
type Run struct {
	Order
	driver *Driver
	done   chan struct{}
	lost   bool // the client exited before the run was done; written before done is closed

	mu    sync.Mutex
	calls []Call
}

// From returns the name of the client that makes the calls.
func (r *Run) From() string { return r.driver.Name }

func (r *Run) add(c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// Calls returns the finished calls, in the order in which they ended.
func (r *Run) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Stop stops new calls from starting and waits for those under way.
func (r *Run) Stop(ctx context.Context) error {
	r.driver.mu.Lock()
	var err error
	if r.driver.runs[r.ID] != nil {
		err = r.driver.send(Order{ID: r.ID, Stop: true})
	}
	r.driver.mu.Unlock()
	if err != nil {
		return err
	}
	return r.Wait(ctx)
}

// Wait waits until all calls are finished. It returns ErrGone if the client exited before that.
func (r *Run) Wait(ctx context.Context) error {
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.lost {
		return fmt.Errorf("calls from %s to %s: %w", r.From(), r.Target, ErrGone)
	}
	return nil
}

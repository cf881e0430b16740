package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// clients call from each node's client pod, and from the node itself.
type clients struct {
	drivers map[lab.Place]*traffic.Driver
	collect sync.WaitGroup
	// orders are the clients' standard inputs; closing one ends its client.
	orders []io.Closer
}

// start starts the demo's client everywhere.
func (c *clients) start(l *lab.Lab, strait string) error {
	c.drivers = map[lab.Place]*traffic.Driver{}
	for _, n := range l.Nodes() {
		for _, place := range both(n) {
			if err := c.startOne(l, strait, place); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *clients) startOne(l *lab.Lab, strait string, place lab.Place) error {
	in, orders, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	reports, out, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("make pipe: %w", err), in.Close(), orders.Close())
	}
	_, err = l.Start(lab.Command{
		Place: place, Stdin: in, Stdout: out, Argv: []string{strait, "demo", "client"},
		Log: filepath.Join(l.NodeDir(place.Node), "bench.log"),
	})
	// The child has its own copies of these descriptors by now.
	if err := errors.Join(err, in.Close(), out.Close()); err != nil {
		return errors.Join(err, orders.Close(), reports.Close())
	}
	driver := traffic.NewDriver(place.String(), orders)
	c.collect.Go(func() {
		defer reports.Close()
		_ = driver.Collect(reports) // an error ends its runs, whose Wait reports it
	})
	c.drivers[place], c.orders = driver, append(c.orders, orders)
	return nil
}

func (c *clients) close() {
	for _, o := range c.orders {
		_ = o.Close() // a pipe to a process that has perhaps exited
	}
	c.collect.Wait()
}

// both returns the callers of a node: its client pod, and the node itself.
func both(n lab.Node) []lab.Place {
	return []lab.Place{{Node: n.Name, Pod: lab.Client}, {Node: n.Name}}
}

// call starts calls from a node's pod and from the node itself.
func (c *clients) call(n lab.Node, o traffic.Order) (runs []*traffic.Run, err error) {
	for _, place := range both(n) {
		run, err := c.drivers[place].Start(o)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func stop(ctx context.Context, runs []*traffic.Run) error {
	var errs []error
	for _, run := range runs {
		errs = append(errs, run.Stop(ctx))
	}
	return errors.Join(errs...)
}

func (c *clusterset) url() string { return "http://" + c.ip.String() }

// answeredElsewhere waits until each run has had an answer from another cluster than home to a call that
// began after t0. It returns when the last of these first answers came.
func (c *clusterset) answeredElsewhere(ctx context.Context, runs []*traffic.Run, t0 time.Time) (last time.Time, err error) {
	for _, run := range runs {
		err := poll(ctx, goneWithin, 2*time.Millisecond, func() bool {
			calls := run.Calls()
			i := slices.IndexFunc(calls, func(call traffic.Call) bool { return call.OK() && call.At.After(t0) && call.Cluster != c.home.Name })
			if i >= 0 && calls[i].End().After(last) {
				last = calls[i].End()
			}
			return i >= 0
		})
		if err != nil {
			return last, fmt.Errorf("wait for an answer to %s from another cluster: %w", run.From(), err)
		}
	}
	return last, nil
}

// bad lists the calls that failed, and those that were made after a time and answered at home.
func (c *clusterset) bad(runs []*traffic.Run, after time.Time) (out []string) {
	for _, run := range runs {
		for _, call := range run.Calls() {
			switch {
			case !call.OK():
				out = append(out, fmt.Sprintf("a call from %s failed: %s", run.From(), call.Err))
			case call.At.After(after) && call.Cluster == c.home.Name:
				out = append(out, fmt.Sprintf("%s was answered by %s in %s", run.From(), call.Pod, call.Cluster))
			}
		}
	}
	return out
}

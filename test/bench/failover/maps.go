package failover

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/demo/lab"
)

// frontends are what one node's maps hold.
type frontends []datapath.Frontend

// have reports whether a frontend sends traffic to an address.
func (fs frontends) have(addr netip.Addr) bool {
	return slices.ContainsFunc(fs, func(f datapath.Frontend) bool {
		return slices.ContainsFunc(f.Backends, func(b datapath.Backend) bool { return b.IP == addr })
	})
}

// snapshot is what all nodes' maps hold, by node.
type snapshot map[string]frontends

// read reads a node's maps from the kernel, without asking its daemon.
func (c *clusterset) read(node string) (frontends, error) {
	fs, err := inspect.Read(c.Pins(node))
	if err != nil {
		return nil, fmt.Errorf("read maps of node %s: %w", node, err)
	}
	// For a moment after its start a daemon has a frontend of its own, to test that its hooks run.
	return slices.DeleteFunc(fs, func(f datapath.Frontend) bool { return f.Addr.IP.IsLoopback() }), nil
}

func (c *clusterset) maps() (snapshot, error) {
	s := snapshot{}
	for _, n := range c.Nodes() {
		fs, err := c.read(n.Name)
		if err != nil {
			return nil, err
		}
		s[n.Name] = fs
	}
	return s, nil
}

// when waits until a condition holds on every node, and returns when it was seen to hold on the last one.
func (c *clusterset) when(ctx context.Context, cond func(frontends) bool) (last time.Time, err error) {
	var mu sync.Mutex
	var g errgroup.Group
	for _, n := range c.Nodes() {
		g.Go(func() error {
			var failure error
			err := poll(ctx, backWithin, 2*time.Millisecond, func() bool {
				fs, err := c.read(n.Name)
				failure = err
				return err == nil && cond(fs)
			})
			if err != nil && failure != nil {
				return failure
			}
			if err != nil {
				return fmt.Errorf("maps of node %s: %w", n.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); now.After(last) {
				last = now
			}
			return nil
		})
	}
	err = g.Wait()
	return last, err
}

// wholeAgain waits until the maps are as they were.
func (c *clusterset) wholeAgain(ctx context.Context) error {
	left := ""
	err := poll(ctx, backWithin, 5*time.Millisecond, func() bool {
		left = c.difference()
		return left == ""
	})
	if left != "" {
		return fmt.Errorf("the maps are not as they were: %s", left)
	}
	return err
}

// difference describes how a node's maps differ from what they held; "" if none does.
func (c *clusterset) difference() string {
	for node, held := range c.whole {
		fs, err := c.read(node)
		if err != nil {
			return err.Error()
		}
		change := datapath.DiffFrontends(held, fs)
		switch {
		case len(change.Put) > 0:
			return fmt.Sprintf("%s now has %+v", node, change.Put[0])
		case len(change.Remove) > 0:
			return fmt.Sprintf("%s lost %s", node, change.Remove[0].Addr)
		}
	}
	return ""
}

// pods returns the addresses of the nodes' pods of the service.
func (c *clusterset) pods(nodes []lab.Node) (out []netip.Addr) {
	for _, n := range nodes {
		if p, ok := n.Pod(lab.Serve); ok {
			out = append(out, p.Addr)
		}
	}
	return out
}

package demo

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

// kernelMaps reads each node's maps from the kernel, without asking the daemons: they can be dead.
type kernelMaps struct {
	lab *lab.Lab
}

func (m kernelMaps) read(node string) ([]datapath.Frontend, error) {
	fs, err := inspect.Read(m.lab.Pins(node))
	if err != nil {
		return nil, fmt.Errorf("read maps of node %s: %w", node, err)
	}
	// For a moment after its start a daemon has a frontend of its own, to test that its hooks run.
	return slices.DeleteFunc(fs, func(f datapath.Frontend) bool { return f.Addr.IP.IsLoopback() }), nil
}

// snapshot is the content of the maps, by node.
type snapshot map[string][]datapath.Frontend

func (m kernelMaps) snapshot(nodes []lab.Node) (snapshot, error) {
	s := snapshot{}
	for _, n := range nodes {
		fs, err := m.read(n.Name)
		if err != nil {
			return nil, err
		}
		s[n.Name] = fs
	}
	return s, nil
}

// holds reports whether a frontend sends traffic to the address.
func holds(fs []datapath.Frontend, addr netip.Addr) bool {
	return slices.ContainsFunc(fs, func(f datapath.Frontend) bool {
		return slices.ContainsFunc(f.Backends, func(b datapath.Backend) bool { return b.IP == addr })
	})
}

// holdsAny reports whether a frontend sends traffic to any of the addresses.
func holdsAny(fs []datapath.Frontend, addrs []netip.Addr) bool {
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool { return holds(fs, a) })
}

// difference describes how a node's frontends differ from those it had before; "" if they do not.
func difference(node string, before, now []datapath.Frontend) string {
	c := datapath.DiffFrontends(before, now)
	switch {
	case len(c.Put) > 0:
		return fmt.Sprintf("%s now sends %s to %s", node, c.Put[0].Addr, backendsText(c.Put[0].Backends))
	case len(c.Remove) > 0:
		return fmt.Sprintf("%s lost %s", node, c.Remove[0].Addr)
	}
	return ""
}

func backendsText(bs []datapath.Backend) string {
	if len(bs) == 0 {
		return "no backend"
	}
	text := ""
	for i, b := range bs {
		if i > 0 {
			text += " "
		}
		text += b.AddrPort().String()
	}
	return text
}

// compare describes what is wrong with a node's frontends, given those it had before; "" if
// nothing.
type compare func(node string, before, now []datapath.Frontend) string

// differences compares the nodes' maps with a snapshot and returns one text per node that differs.
func (m kernelMaps) differences(was snapshot, with compare) []string {
	var out []string
	for node, before := range was {
		fs, err := m.read(node)
		if err != nil {
			out = append(out, err.Error())
		} else if d := with(node, before, fs); d != "" {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}

// withdrawal returns a compare that reports backends that a node should have kept while a cluster
// is cut off: a backend on the node's own side of the cut, or a frontend's last one. Losing another
// backend beyond the cut is no fault: once it is known not to answer, others beyond the cut can
// rank before it.
func withdrawal(t lab.Topology, cut string) compare {
	clusterOf := func(a netip.Addr) string {
		for _, n := range t.Nodes() {
			if n.PodCIDR.Contains(a) {
				return n.Cluster
			}
		}
		return ""
	}
	return func(node string, before, now []datapath.Frontend) string {
		place := slices.IndexFunc(t.Nodes(), func(n lab.Node) bool { return n.Name == node })
		inCut := t.Nodes()[place].Cluster == cut
		for _, f := range before {
			i := slices.IndexFunc(now, func(g datapath.Frontend) bool { return g.Addr == f.Addr })
			if i < 0 || len(now[i].Backends) == 0 {
				return fmt.Sprintf("%s lost all of %s", node, f.Addr)
			}
			for _, b := range f.Backends {
				sameSide := (clusterOf(b.IP) == cut) == inCut
				if sameSide && !holds(now[i:i+1], b.IP) {
					return fmt.Sprintf("%s withdrew %s of %s", node, b.AddrPort(), f.Addr)
				}
			}
		}
		return ""
	}
}

// again waits until the maps match a snapshot, and returns how they still differ after the limit.
func (m kernelMaps) again(ctx context.Context, was snapshot, with compare, limit time.Duration) []string {
	var faults []string
	_ = poll(ctx, limit, 5*time.Millisecond, func() bool { // faults holds the outcome
		faults = m.differences(was, with)
		return len(faults) == 0
	})
	return faults
}

// when waits until a condition on the maps holds on every node, and returns when it was seen to
// hold on the last one. It returns errNever if a node takes longer than limit.
func (m kernelMaps) when(ctx context.Context, nodes []lab.Node, limit time.Duration, cond func(lab.Node, []datapath.Frontend) bool) (time.Time, error) {
	var mu sync.Mutex
	var last time.Time
	var g errgroup.Group
	for _, n := range nodes {
		g.Go(func() error {
			var failure error
			err := poll(ctx, limit, 2*time.Millisecond, func() bool {
				fs, err := m.read(n.Name)
				failure = err
				return err == nil && cond(n, fs)
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
	return last, g.Wait()
}

// mapWatch checks that maps do not change.
type mapWatch struct {
	stop  context.CancelFunc
	done  chan struct{}
	fault map[string]bool
	order []string
	reads int
}

// watch compares the maps with a snapshot every 100 ms, until end is called.
func (m kernelMaps) watch(ctx context.Context, was snapshot, with compare) *mapWatch {
	ctx, stop := context.WithCancel(ctx)
	g := &mapWatch{stop: stop, done: make(chan struct{}), fault: map[string]bool{}}
	begun := time.Now()
	go func() {
		defer close(g.done)
		for {
			g.reads++
			for _, d := range m.differences(was, with) {
				if !g.fault[d] {
					g.fault[d] = true
					g.order = append(g.order, fmt.Sprintf("after %s: %s", time.Since(begun).Round(10*time.Millisecond), d))
				}
			}
			if sleep(ctx, 100*time.Millisecond) != nil {
				return
			}
		}
	}()
	return g
}

// end stops the watch and returns the changes that it saw.
func (g *mapWatch) end() []string {
	g.stop()
	<-g.done
	return g.order
}

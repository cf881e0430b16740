package demo

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// nodeDeath is step 4: a machine dies and its backends leave every map. It boots again and they
// return.
func (s *scenario) nodeDeath(ctx context.Context) error {
	victim := s.last.Nodes[len(s.last.Nodes)-1]
	if len(s.last.Nodes) < 2 {
		s.out.note("skipping step 4: in a cluster of one node, no other node can report it dead; use --nodes 2")
		return nil
	}
	st, end := s.begin(ctx, 4, "node death", fmt.Sprintf("node %s loses power, then boots again; calls to far by ClusterSetIP", victim.Name))
	return end(s.doNodeDeath(ctx, st, victim))
}

func (s *scenario) doNodeDeath(ctx context.Context, st *Step, victim lab.Node) error {
	// Callers that rank the victim's pods among the nearest, and the victim's neighbour.
	callers := []lab.Node{s.home.Nodes[0], s.last.Nodes[0]}
	if s.cut.Name != s.last.Name {
		callers = append(callers, s.cut.Nodes[0])
	}
	for _, n := range callers {
		if _, err := s.call(st, n, traffic.Order{Target: s.farURL(), EveryMS: 50}); err != nil {
			return err
		}
	}
	if err := sleep(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	t0 := time.Now()
	if err := s.PowerOff(ctx, victim); err != nil {
		return err
	}
	var lost []netip.Addr
	for _, p := range victim.Pods {
		lost = append(lost, p.Addr)
	}
	alive := func(c traffic.Call) bool { return c.Node != victim.Name }
	var others []lab.Node
	for _, n := range s.Nodes() {
		if n.Name != victim.Name {
			others = append(others, n)
		}
	}
	err := s.measure(ctx, st, t0, nodeDeadWithin, alive, others, func(_ lab.Node, fs []datapath.Frontend) bool {
		return !holdsAny(fs, lost)
	})
	if err != nil {
		return err
	}
	gone := time.Now()
	if err := sleep(ctx, 600*time.Millisecond); err != nil {
		return err
	}
	if err := s.reboot(ctx, s.last, victim); err != nil {
		return err
	}
	st.expectNone("the maps are as before, with the node back", s.maps.again(ctx, s.whole, difference, backWithin))
	_, err = firstRight(ctx, st.runs[:2], gone, backWithin, func(c traffic.Call) bool { return c.Node == victim.Name })
	if ctx.Err() != nil {
		return err
	}
	st.expectNoError("the node's pods answered again", err)
	return s.settle(ctx)
}

// clientRestart is step 7: the daemon on the callers' node is killed and restarted, and no caller
// notices.
func (s *scenario) clientRestart(ctx context.Context) error {
	n := s.home.Nodes[0]
	st, end := s.begin(ctx, 7, "client's daemon",
		fmt.Sprintf("straitd on %s, a client's node, is killed with SIGKILL and restarted; calls to serve and far by ClusterSetIP", n.Name))
	return end(s.doClientRestart(ctx, st, n))
}

func (s *scenario) doClientRestart(ctx context.Context, st *Step, n lab.Node) error {
	for _, url := range []string{s.serveURL(), s.farURL()} {
		if _, err := s.call(st, n, traffic.Order{Target: url, EveryMS: 10}); err != nil {
			return err
		}
	}
	if err := sleep(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	down := time.Now()
	if err := s.killDaemon(n.Name); err != nil {
		return err
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	up := time.Now()
	if err := s.startDaemon(n.Name); err != nil {
		return err
	}
	if err := s.waitReady(ctx, n.Name); err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	st.expectSome("calls were answered while the daemon was down", between(st, down, up))
	st.expectNone("the maps are as before", s.maps.again(ctx, s.whole, difference, backWithin))
	return s.settle(ctx)
}

// between counts the calls that began after from and were answered before to.
func between(st *Step, from, to time.Time) (n int) {
	for _, run := range st.runs {
		for _, c := range run.Calls() {
			if c.OK() && c.At.After(from) && c.End().Before(to) {
				n++
			}
		}
	}
	return n
}

// downFor is how long the daemon on a backend's node stays down in step 8: many times longer than
// gossip takes to declare a node dead.
const downFor = 30 * time.Second

// backendDown is step 8: a dead daemon is not a dead node.
func (s *scenario) backendDown(ctx context.Context) error {
	n := s.last.Nodes[0]
	st, end := s.begin(ctx, 8, "back end's daemon",
		fmt.Sprintf("straitd on %s, a backend's node, is killed with SIGKILL and stays down for %s; calls by ClusterSetIP", n.Name, downFor))
	return end(s.doBackendDown(ctx, st, n))
}

func (s *scenario) doBackendDown(ctx context.Context, st *Step, n lab.Node) error {
	for _, caller := range []lab.Node{s.home.Nodes[0], n} {
		for _, url := range []string{s.serveURL(), s.farURL()} {
			if _, err := s.call(st, caller, traffic.Order{Target: url, EveryMS: 50}); err != nil {
				return err
			}
		}
	}
	if err := sleep(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	watch := s.maps.watch(ctx, s.whole, difference)
	defer watch.end()
	down := time.Now()
	if err := s.killDaemon(n.Name); err != nil {
		return err
	}
	if err := sleep(ctx, downFor); err != nil {
		return err
	}
	st.expectNone("no map changed while the daemon was down", watch.end())
	hits := 0
	for _, run := range st.runs {
		for _, c := range run.Calls() {
			if c.OK() && c.Node == n.Name && c.At.After(down) {
				hits++
			}
		}
	}
	st.expectSome("the node's pods answered calls while its daemon was down", hits)
	if err := s.startDaemon(n.Name); err != nil {
		return err
	}
	if err := s.waitReady(ctx, n.Name); err != nil {
		return err
	}
	st.expectNone("the maps are as before, with the daemon back", s.maps.again(ctx, s.whole, difference, backWithin))
	return s.settle(ctx)
}

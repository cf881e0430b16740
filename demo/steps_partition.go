package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/datapath"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// cutFor is how long a cluster is cut off before its daemons are restarted. It is longer than a
// dead machine takes to be withdrawn, so that a wrong withdrawal would show.
const cutFor = 10 * time.Second

// partition runs step 5 and, inside it, step 6: a cluster is cut off, its daemons are restarted
// during the cut, and the cut is healed.
func (s *scenario) partition(ctx context.Context) error {
	st, end := s.begin(ctx, 5, "partition",
		fmt.Sprintf("%s is cut off from the others, then rejoins; calls by ClusterSetIP", s.cut.Name))
	var restart *Step
	var endRestart func(error) error
	var restartErr error
	err := s.doPartition(ctx, st, func() error {
		restart, endRestart = s.begin(ctx, 6, "restart in the cut",
			fmt.Sprintf("every straitd in %s is killed with SIGKILL and restarted during the cut; calls by ClusterSetIP", s.cut.Name))
		restartErr = s.doRestartInCut(ctx, restart)
		return restartErr
	})
	if err != nil && ctx.Err() == nil { // keep the failure from affecting later steps
		_, back := s.writeReady(s.cut.Name, s.cut.Nodes, true)
		err = errors.Join(err, s.Heal(s.cut), back)
	}
	err = end(err) // from here on, an error is an interruption
	if endRestart == nil {
		return err
	}
	return cmp.Or(err, endRestart(restartErr))
}

// doPartition carries out step 5, with step 6 inside it. Step 6 records its own failed
// expectations.
func (s *scenario) doPartition(ctx context.Context, st *Step, restart func() error) error {
	if err := s.callBothSides(st); err != nil {
		return err
	}
	if err := sleep(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	watch := s.maps.watch(ctx, s.whole, withdrawal(s.Topology, s.cut.Name))
	defer watch.end()
	cut := time.Now()
	if err := s.Cut(s.cut); err != nil {
		return err
	}
	if err := sleep(ctx, cutFor); err != nil {
		return err
	}
	st.expectNone("no map lost a reachable backend or a Service's last one in the "+cutFor.String()+" cut", watch.end())
	st.expectSome("calls were answered during the cut", between(st, cut, time.Now()))
	if err := restart(); err != nil {
		return err
	}
	s.out.progress(fmt.Sprintf("step 5, continued: %s rejoins the others", s.cut.Name))
	if err := s.Heal(s.cut); err != nil {
		return err
	}
	st.expectNone("every node hears all others again", s.healed(ctx))
	st.expectNone("the maps are as before", s.maps.again(ctx, s.whole, difference, backWithin))
	return s.callAcross(ctx, st)
}

// callBothSides starts calls on both sides of the cut that need nothing from the other side.
func (s *scenario) callBothSides(st *Step) error {
	for _, n := range append([]lab.Node{s.home.Nodes[0]}, s.cut.Nodes...) {
		if _, err := s.call(st, n, traffic.Order{Target: s.serveURL(), EveryMS: 50}); err != nil {
			return err
		}
	}
	if s.cut.Name == s.last.Name {
		return nil // far is beyond the cut
	}
	_, err := s.call(st, s.home.Nodes[0], traffic.Order{Target: s.farURL(), EveryMS: 50})
	return err
}

// healed waits until all nodes hear each other again, and returns what is still missing.
func (s *scenario) healed(ctx context.Context) []string {
	var waiting string
	err := poll(ctx, backWithin, 50*time.Millisecond, func() bool {
		waiting = s.unsettled(ctx)
		return waiting == ""
	})
	if err != nil {
		return []string{waiting}
	}
	return nil
}

// callAcross shows that the tunnels between the two sides work again, in both directions.
func (s *scenario) callAcross(ctx context.Context, st *Step) error {
	caller := s.cut.Nodes[0]
	if s.cut.Name == s.last.Name {
		caller = s.home.Nodes[0]
	}
	runs, err := s.call(st, caller, traffic.Order{Target: s.farURL(), Calls: 10, EveryMS: 20})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := run.Wait(ctx); err != nil {
			return err
		}
	}
	st.expectNone("after healing, every answer for far came from "+s.last.Name, wrong(runs, time.Time{}, from(s.last.Name)))
	return nil
}

// doRestartInCut carries out step 6. The state that the restarted daemons read from disk preserves
// everything that was known, and changes on this side of the cut still apply.
func (s *scenario) doRestartInCut(ctx context.Context, st *Step) error {
	for _, n := range s.cut.Nodes {
		if _, err := s.call(st, n, traffic.Order{Target: s.serveURL(), EveryMS: 50}); err != nil {
			return err
		}
	}
	watch := s.maps.watch(ctx, s.whole, withdrawal(s.Topology, s.cut.Name))
	defer watch.end()
	err := s.restartAll(ctx, s.cut.Nodes)
	st.expectNoError("every restarted daemon is ready again", err)
	if err != nil {
		return ctx.Err()
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	st.expectNone("no map lost a reachable backend or a Service's last one by the restart", watch.end())
	if len(s.cut.Nodes) < 2 {
		s.out.note("skipping the local change of step 6: without its only pod the cluster has no backend that it can reach; use --nodes 2")
		return nil
	}
	return s.changeInCut(ctx, st)
}

func (s *scenario) restartAll(ctx context.Context, nodes []lab.Node) error {
	for _, n := range nodes {
		if err := s.killDaemon(n.Name); err != nil {
			return err
		}
	}
	if err := sleep(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	var g errgroup.Group
	for _, n := range nodes {
		if err := s.startDaemon(n.Name); err != nil {
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error { return s.waitReady(ctx, n.Name) })
	}
	return g.Wait()
}

// changeInCut removes one pod of the cut cluster and brings it back. Its own cluster follows; the
// other clusters cannot know.
func (s *scenario) changeInCut(ctx context.Context, st *Step) error {
	node := s.cut.Nodes[0]
	pod, _ := node.Pod(lab.Serve)
	if _, err := s.writeReady(s.cut.Name, []lab.Node{node}, false); err != nil {
		return err
	}
	begun := time.Now()
	at, err := s.maps.when(ctx, s.cut.Nodes, endpointGoneWithin, func(_ lab.Node, fs []datapath.Frontend) bool {
		return !holds(fs, pod.Addr)
	})
	if err != nil && !errors.Is(err, errNever) {
		return err
	}
	st.expectSoon("a pod that left during the cut also left the maps of "+s.cut.Name, at.Sub(begun), endpointGoneWithin, err)
	st.expectNone("no map lost another reachable backend or a Service's last one", s.withdrawnBesides(pod.Addr))
	changed := time.Now()
	if err := sleep(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	gone := func(c traffic.Call) bool { return c.Address != pod.Addr && c.Cluster == s.cut.Name }
	st.expectNone("no answer came from that pod, or from another cluster", wrong(st.runs, changed, gone))
	if _, err := s.writeReady(s.cut.Name, []lab.Node{node}, true); err != nil {
		return err
	}
	// The pod's own node ramps its traffic up, and begins a second or two later.
	st.expectNone("every map has its reachable backends again, with the pod back", s.maps.again(ctx, s.whole, withdrawal(s.Topology, s.cut.Name), backWithin))
	return nil
}

// withdrawnBesides lists what maps have lost since s.whole, ignoring frontends that held addr.
func (s *scenario) withdrawnBesides(addr netip.Addr) []string {
	with := withdrawal(s.Topology, s.cut.Name)
	var out []string
	for node, before := range s.whole {
		fs, err := s.maps.read(node)
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		before = slices.DeleteFunc(slices.Clone(before), func(f datapath.Frontend) bool {
			if !holds([]datapath.Frontend{f}, addr) {
				return false
			}
			fs = slices.DeleteFunc(fs, func(g datapath.Frontend) bool { return g.Addr == f.Addr && len(g.Backends) > 0 })
			return true
		})
		if d := with(node, before, fs); d != "" {
			out = append(out, d)
		}
	}
	return out
}

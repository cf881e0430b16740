package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// Limits on what the scenario waits for. They are what is expected of a busy machine; targets are what
// is aimed at on an idle one.
const (
	endpointGoneWithin = 1500 * time.Millisecond
	nodeDeadWithin     = 9 * time.Second
	backWithin         = 15 * time.Second
)

// scenario plays the demo's steps on a clusterset that is up.
type scenario struct {
	*clusterset
	maps kernelMaps
	out  *printer
	res  *Result

	// home is where the calls come from, cut is cut off, last has the Service far.
	home, cut, last lab.Cluster
	ip              netip.Addr // ClusterSetIP of serve
	farIP           netip.Addr
	// whole is what the maps hold when all is well.
	whole snapshot
}

func newScenario(cs *clusterset, out *printer, res *Result) *scenario {
	return &scenario{
		clusterset: cs, maps: kernelMaps{cs.Lab}, out: out, res: res,
		home: cs.Clusters[0], cut: cs.Clusters[1], last: cs.Clusters[len(cs.Clusters)-1],
	}
}

// play plays all steps. A step that cannot go on is a failed expectation of its own, and the next one is
// tried; only an interruption, or a clusterset that does not come up, ends the demo early.
func (s *scenario) play(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.answer(ctx); err != nil {
		return err
	}
	if !s.ip.IsValid() || !s.farIP.IsValid() || s.whole == nil {
		return errors.New("without a ClusterSetIP that works everywhere there is nothing more to show; `strait demo --keep` leaves it up to look at")
	}
	for _, part := range []func(context.Context) error{
		s.failover, s.comeHome, s.nodeDeath, s.partition, s.clientRestart, s.backendDown,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until every node knows every other and sends both Services where they should go.
func (s *scenario) settle(ctx context.Context) error {
	s.out.progress("waiting until every node knows all others")
	var waiting string
	err := poll(ctx, readyWithin, 50*time.Millisecond, func() bool {
		waiting = s.unsettled(ctx)
		return waiting == ""
	})
	if errors.Is(err, errNever) {
		return fmt.Errorf("the clusterset is not complete after %s: %s", readyWithin, waiting)
	}
	return err
}

// unsettled says what is still missing; empty if nothing is.
func (s *scenario) unsettled(ctx context.Context) string {
	for _, n := range s.Nodes() {
		status, err := s.api(n.Name).Status(ctx)
		if err != nil {
			return err.Error()
		}
		alive := 0
		for _, c := range status.Clusters {
			alive += c.Alive
		}
		if len(status.Clusters) != len(s.Clusters) || alive != len(s.Nodes()) {
			return fmt.Sprintf("%s hears %d of %d nodes", n.Name, alive, len(s.Nodes()))
		}
		s.res.WireGuard = status.Datapath.Mesh
		fs, err := s.maps.read(n.Name)
		if err != nil {
			return err.Error()
		}
		if missing := s.missing(n, fs); missing != "" {
			return n.Name + " " + missing
		}
	}
	return ""
}

// missing says what the maps of a node lack: a way to serve in its own cluster, and one to each pod of
// far, or to its own.
func (s *scenario) missing(n lab.Node, fs []datapath.Frontend) string {
	if !slices.ContainsFunc(s.servePods(n.Cluster), func(a netip.Addr) bool { return holds(fs, a) }) {
		return "has no backend of serve in its own cluster"
	}
	pods := s.pods(s.last.Nodes, lab.Far)
	if p, ok := n.Pod(lab.Far); ok {
		pods = []netip.Addr{p.Addr}
	}
	for _, a := range pods {
		if !holds(fs, a) {
			return "has no backend " + a.String() + " of far"
		}
	}
	return ""
}

func (s *scenario) servePods(cluster string) []netip.Addr {
	for _, c := range s.Clusters {
		if c.Name == cluster {
			return s.pods(c.Nodes, lab.Serve)
		}
	}
	return nil
}

func (s *scenario) pods(nodes []lab.Node, kind string) []netip.Addr {
	var out []netip.Addr
	for _, n := range nodes {
		if p, ok := n.Pod(kind); ok {
			out = append(out, p.Addr)
		}
	}
	return out
}

// begin opens a step. The function that it returns closes it: calls are stopped and counted, the table
// is printed.
func (s *scenario) begin(ctx context.Context, number int, name, title string) (*Step, func(error) error) {
	st := &Step{Number: number, Name: name, Title: title, begun: time.Now()}
	s.out.progress(fmt.Sprintf("step %d: %s", number, title))
	return st, func(err error) error {
		for _, run := range st.runs {
			if e := run.Stop(ctx); e != nil && err == nil {
				err = e
			}
		}
		st.Seconds = seconds(time.Since(st.begun))
		st.count()
		if ctx.Err() != nil {
			s.res.Steps = append(s.res.Steps, st)
			return ctx.Err()
		}
		if err != nil {
			st.expect(false, "the step could be carried out", err.Error(), "no error")
		}
		st.expect(st.Failures == 0, "calls that failed", fmt.Sprint(st.Failures)+firstError(st), "0")
		s.res.Steps = append(s.res.Steps, st)
		s.out.step(st, s.clusterNames())
		return nil
	}
}

func firstError(st *Step) string {
	for _, r := range st.Rows {
		if r.FirstError != "" {
			return fmt.Sprintf(", the first from %s to %s at %s", r.From, r.Target, r.FirstError)
		}
	}
	return ""
}

func (s *scenario) clusterNames() []string {
	var out []string
	for _, c := range s.Clusters {
		out = append(out, c.Name)
	}
	return out
}

// both are the callers of a node: its client pod, and the node itself.
func both(n lab.Node) []lab.Place {
	return []lab.Place{{Node: n.Name, Pod: lab.Client}, {Node: n.Name}}
}

// call starts calls from a node's pod and from the node itself.
func (s *scenario) call(st *Step, n lab.Node, o traffic.Order) ([]*traffic.Run, error) {
	var out []*traffic.Run
	for _, place := range both(n) {
		s.mu.Lock()
		driver := s.clients[place]
		s.mu.Unlock()
		run, err := driver.Start(o)
		if err != nil {
			return nil, err
		}
		st.runs = append(st.runs, run)
		out = append(out, run)
	}
	return out, nil
}

func (s *scenario) serveURL() string { return "http://" + s.ip.String() }

func (s *scenario) farURL() string { return "http://" + s.farIP.String() }

// right decides whether an answer is the one that is waited for.
type right func(traffic.Call) bool

// firstRight waits until each run has had a right answer of a call that ended after t0, and returns when
// the last of these first answers came; errNever after the limit.
func firstRight(ctx context.Context, runs []*traffic.Run, t0 time.Time, limit time.Duration, ok right) (time.Time, error) {
	var last time.Time
	for _, run := range runs {
		err := poll(ctx, limit, 2*time.Millisecond, func() bool {
			for _, c := range run.Calls() {
				if c.OK() && c.At.After(t0) && ok(c) {
					if c.End().After(last) {
						last = c.End()
					}
					return true
				}
			}
			return false
		})
		if err != nil {
			return last, fmt.Errorf("a right answer to %s: %w", run.From(), err)
		}
	}
	return last, nil
}

// wrong lists the answers after a moment that should not have come.
func wrong(runs []*traffic.Run, after time.Time, ok right) []string {
	var out []string
	for _, run := range runs {
		for _, c := range run.Calls() {
			if c.OK() && c.At.After(after) && !ok(c) {
				out = append(out, fmt.Sprintf("%s was answered by %s in %s", run.From(), c.Pod, c.Cluster))
			}
		}
	}
	return out
}

func from(clusters ...string) right {
	return func(c traffic.Call) bool { return slices.Contains(clusters, c.Cluster) }
}

func notFrom(clusters ...string) right {
	return func(c traffic.Call) bool { return !slices.Contains(clusters, c.Cluster) }
}

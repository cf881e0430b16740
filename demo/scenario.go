package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// Limits on what the scenario waits for. A busy machine must meet them; the targets in story.go are
// for an idle one.
const (
	endpointGoneWithin = 1500 * time.Millisecond
	nodeDeadWithin     = 9 * time.Second
	backWithin         = 15 * time.Second
)

// scenario runs the demo's steps on a clusterset that is up.
type scenario struct {
	*clusterset
	maps kernelMaps
	out  *printer
	res  *Result

	// home is the cluster that calls come from, cut is the one that gets cut off, and last has the
	// Service far.
	home, cut, last lab.Cluster
	ip              netip.Addr // ClusterSetIP of serve
	farIP           netip.Addr // ClusterSetIP of far
	// whole is the content of the maps while nothing is broken.
	whole snapshot
}

func newScenario(cs *clusterset, out *printer, res *Result) *scenario {
	return &scenario{
		clusterset: cs, maps: kernelMaps{cs.Lab}, out: out, res: res,
		home: cs.Clusters[0], cut: cs.Clusters[1], last: cs.Clusters[len(cs.Clusters)-1],
	}
}

// play runs all steps. A step that cannot complete counts as a failed expectation, and the next
// step still runs. Only an interruption, or a clusterset that does not come up, ends the demo
// early.
func (s *scenario) play(ctx context.Context) error {
	if err := s.comeUp(ctx); err != nil {
		return err
	}
	if !s.ip.IsValid() || !s.farIP.IsValid() || s.whole == nil {
		return errors.New("skip the remaining steps: no ClusterSetIP works everywhere; `strait demo up` leaves the clusterset up for inspection")
	}
	for _, part := range []func(context.Context) error{
		s.failover, s.comeHome, s.nodeDeath, s.partition, s.clientRestart, s.backendDown, s.brownOut,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// comeUp waits until the clusterset is up, and runs the first step: all that a user needs to look around.
func (s *scenario) comeUp(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	return s.answer(ctx)
}

// settle waits until every node hears every other node, sends both Services to the right backends,
// and has tunnels that carry packets.
func (s *scenario) settle(ctx context.Context) error {
	s.out.progress("waiting until every node hears all others, and the tunnels carry packets")
	var waiting string
	err := poll(ctx, readyWithin, 50*time.Millisecond, func() bool {
		waiting = cmp.Or(s.unsettled(ctx), s.withoutTunnel(ctx))
		return waiting == ""
	})
	if errors.Is(err, errNever) {
		return fmt.Errorf("the clusterset is not complete after %s: %s", readyWithin, waiting)
	}
	return err
}

// withoutTunnel describes the first tunnel through which no packet came back yet; "" if there is
// none. WireGuard repeats a handshake that was lost after 5 s, for which no call would wait.
func (s *scenario) withoutTunnel(ctx context.Context) string {
	for _, n := range s.Nodes() {
		list, err := s.api(n.Name).Nodes(ctx)
		if err != nil {
			return err.Error()
		}
		for _, other := range list.Items {
			if t := other.Tunnel; t != nil && slices.Contains([]string{"unknown", "never", "silent", "one-way"}, t.State) {
				return fmt.Sprintf("%s: the tunnel to %s is %s", n.Name, other.Name, t.State)
			}
		}
	}
	return ""
}

// unsettled describes the first thing that is still missing; "" if nothing is.
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
		// A daemon fills the maps first. A moment later it answers with what it put there, by DNS too.
		services, err := s.api(n.Name).Services(ctx)
		if err != nil {
			return err.Error()
		}
		for _, kind := range []string{lab.Serve, lab.Far} {
			if !hasAddress(services.Items, kind) {
				return n.Name + " does not answer for " + kind + " yet"
			}
		}
	}
	return ""
}

// hasAddress reports whether a daemon's services include one with a ClusterSetIP. A daemon knows a service
// before the leader gives it its address, and has no answer for its name until then.
func hasAddress(items []api.Service, kind string) bool {
	return slices.ContainsFunc(items, func(x api.Service) bool { return x.Name == "default/"+kind && len(x.IPs) > 0 })
}

// missing describes the first backend that a node's maps lack; "" if none. A node needs a backend
// of serve in its own cluster. For far it needs its own pod if it has one, otherwise every pod.
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

// begin starts a step. The returned function ends it: it stops and counts the calls, and prints the
// table.
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
			st.expectNoError("the step ran to its end", err)
		}
		st.expectNoFailures()
		st.ended = true
		s.res.Steps = append(s.res.Steps, st)
		s.out.step(st, s.clusterNames())
		return nil
	}
}

func (s *scenario) clusterNames() []string {
	var out []string
	for _, c := range s.Clusters {
		out = append(out, c.Name)
	}
	return out
}

// both returns the callers of a node: its client pod, and the node itself.
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

// right reports whether an answer is an expected one.
type right func(traffic.Call) bool

// firstRight waits until each run has had a right answer to a call that began after t0. It returns
// when the last of these first answers came. It returns errNever if a run takes longer than limit.
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
			return last, fmt.Errorf("wait for the right answer to %s: %w", run.From(), err)
		}
	}
	return last, nil
}

// wrong lists the answers to calls made after a given time that are not right.
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

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// Names that strait's DNS answers for (KEP-1645).
const (
	serveName = "serve.default.svc.clusterset.local"
	farName   = "far.default.svc.clusterset.local"
	udpPort   = 5353
)

// answer is step 1: the same name and address work everywhere, and the nearest cluster answers.
func (s *scenario) answer(ctx context.Context) error {
	st, end := s.begin(ctx, 1, "answer", "in every cluster, a pod and the node itself call serve by name and by ClusterSetIP")
	return end(s.doAnswer(ctx, st))
}

func (s *scenario) doAnswer(ctx context.Context, st *Step) error {
	wait := func() error {
		for _, run := range st.runs {
			if err := run.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	for _, n := range s.Nodes() {
		if _, err := s.call(st, n, traffic.Order{Target: "http://" + serveName, Calls: 10, EveryMS: 10}); err != nil {
			return err
		}
	}
	if err := wait(); err != nil {
		return err
	}
	ips := calledAddrs(st.runs)
	st.expect(len(ips) == 1, "the name serve gave the same ClusterSetIP in every cluster", addrsText(ips), "one")
	if len(ips) == 0 {
		return errors.New("resolve " + serveName + ": no node has an answer")
	}
	s.ip, s.res.ClusterSetIP = ips[0], ips[0]
	st.expect(netip.MustParsePrefix(clustersetCIDR).Contains(s.ip), "the ClusterSetIP is in the clusterset's range, "+clustersetCIDR, s.ip.String(), clustersetCIDR)

	for _, n := range s.Nodes() {
		for _, o := range []traffic.Order{
			{Target: s.serveURL(), Calls: 20, EveryMS: 10},
			{Target: fmt.Sprintf("udp://%s:%d", s.ip, udpPort), Calls: 1},
		} {
			if _, err := s.call(st, n, o); err != nil {
				return err
			}
		}
	}
	if err := wait(); err != nil {
		return err
	}
	st.expectNone("every answer came from the caller's own cluster", s.strangers(st.runs))
	if err := s.findFar(ctx, st); err != nil {
		return err
	}
	whole, err := s.maps.snapshot(s.Nodes())
	s.whole = whole
	return err
}

// findFar finds the ClusterSetIP of far, and expects only the cluster that has far to answer.
func (s *scenario) findFar(ctx context.Context, st *Step) error {
	runs, err := s.call(st, s.home.Nodes[0], traffic.Order{Target: "http://" + farName, Calls: 5, EveryMS: 20})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := run.Wait(ctx); err != nil {
			return err
		}
	}
	ips := calledAddrs(runs)
	st.expect(len(ips) == 1 && ips[0] != s.ip, "far has a ClusterSetIP of its own", addrsText(ips), "one other than "+s.ip.String())
	if len(ips) > 0 {
		s.farIP = ips[0]
	}
	st.expectNone("every answer for far came from "+s.last.Name+", the only cluster that has it", wrong(runs, time.Time{}, from(s.last.Name)))
	return nil
}

// calledAddrs lists the addresses that names resolved to.
func calledAddrs(runs []*traffic.Run) []netip.Addr {
	var ips []netip.Addr
	for _, run := range runs {
		for _, c := range run.Calls() {
			if c.To.IsValid() {
				ips = append(ips, c.To.Addr())
			}
		}
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}

func addrsText(ips []netip.Addr) string {
	if len(ips) == 0 {
		return "none"
	}
	return strings.Trim(fmt.Sprint(ips), "[]")
}

// strangers lists answers that came from another cluster than the caller's.
func (s *scenario) strangers(runs []*traffic.Run) []string {
	var out []string
	for _, run := range runs {
		for _, n := range s.Nodes() {
			if p := both(n); run.From() == p[0].String() || run.From() == p[1].String() {
				out = append(out, wrong([]*traffic.Run{run}, time.Time{}, from(n.Cluster))...)
			}
		}
	}
	return out
}

// failover is step 2: a cluster's own backends go away, and other clusters answer the next calls.
func (s *scenario) failover(ctx context.Context) error {
	st, end := s.begin(ctx, 2, "pods gone", fmt.Sprintf("the serve pods in %s go away; calls by ClusterSetIP", s.home.Name))
	return end(s.doFailover(ctx, st))
}

func (s *scenario) doFailover(ctx context.Context, st *Step) error {
	before, err := s.tunnelBytes(ctx)
	if err != nil {
		return err
	}
	if err := s.callHome(ctx, st); err != nil {
		return err
	}
	t0, err := s.writeReady(s.home.Name, s.home.Nodes, false)
	if err != nil {
		return err
	}
	elsewhere := notFrom(s.home.Name)
	gone := s.servePods(s.home.Name)
	err = s.measure(ctx, st, t0, endpointGoneWithin, elsewhere, s.Nodes(), func(_ lab.Node, fs []datapath.Frontend) bool {
		return !holdsAny(fs, gone)
	})
	if err != nil {
		return err
	}
	if err := sleep(ctx, 600*time.Millisecond); err != nil {
		return err
	}
	st.expectNone("after that, no answer came from a pod that was gone", wrong(st.runs, st.window.to, elsewhere))
	var after int64
	err = poll(ctx, 5*time.Second, 100*time.Millisecond, func() bool {
		after, err = s.tunnelBytes(ctx)
		return err == nil && after > before
	})
	if ctx.Err() != nil {
		return err
	}
	st.expect(after > before, "the answers came through WireGuard", fmt.Sprintf("%d bytes received by %s", after-before, s.home.Nodes[0].Name), "more than 0")
	return nil
}

// callHome starts steady calls to serve from every node of the home cluster, and waits until they
// are under way.
func (s *scenario) callHome(ctx context.Context, st *Step) error {
	for _, n := range s.home.Nodes {
		if _, err := s.call(st, n, traffic.Order{Target: s.serveURL(), EveryMS: 20}); err != nil {
			return err
		}
	}
	return sleep(ctx, 400*time.Millisecond)
}

// measure sets the step's window [t0, t1] and records the failover time t1 - t0. t1 is when cond
// holds for the maps of all nodes and every caller has had its first right answer, whichever comes
// later.
func (s *scenario) measure(ctx context.Context, st *Step, t0 time.Time, limit time.Duration, ok right,
	nodes []lab.Node, cond func(lab.Node, []datapath.Frontend) bool,
) error {
	// t1 is not known yet, so the window is long enough to cover all calls until then.
	st.window = window{t0, t0.Add(2 * limit)}
	inMaps, err := s.maps.when(ctx, nodes, limit, cond)
	if err == nil {
		var answered time.Time
		answered, err = firstRight(ctx, st.runs, t0, limit, ok)
		st.window.to = inMaps
		if answered.After(inMaps) {
			st.window.to = answered
		}
	}
	if err != nil && !errors.Is(err, errNever) {
		return err
	}
	took := st.window.to.Sub(t0)
	if err == nil {
		ms := millis(took)
		st.FailoverMS = &ms
	}
	st.expectSoon("backends left every node's map, and right answers came", took, limit, err)
	return nil
}

// tunnelBytes returns how many bytes the first node of the home cluster has received through its
// tunnel.
func (s *scenario) tunnelBytes(ctx context.Context) (int64, error) {
	list, err := s.api(s.home.Nodes[0].Name).Nodes(ctx)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, n := range list.Items {
		if n.Tunnel != nil {
			sum += n.Tunnel.Received
		}
	}
	return sum, nil
}

// comeHome is step 3: the backends come back, and so does the traffic.
func (s *scenario) comeHome(ctx context.Context) error {
	st, end := s.begin(ctx, 3, "return", fmt.Sprintf("the serve pods in %s come back; calls by ClusterSetIP", s.home.Name))
	return end(s.doComeHome(ctx, st))
}

func (s *scenario) doComeHome(ctx context.Context, st *Step) error {
	if err := s.callHome(ctx, st); err != nil {
		return err
	}
	t0, err := s.writeReady(s.home.Name, s.home.Nodes, true)
	if err != nil {
		return err
	}
	back, err := firstRight(ctx, st.runs, t0, backWithin, from(s.home.Name))
	if err != nil && !errors.Is(err, errNever) {
		return err
	}
	st.expectSoon("every caller was answered by its own cluster again", back.Sub(t0), backWithin, err)
	st.expectNone("the traffic came back little by little, until the maps were as before step 2", s.maps.again(ctx, s.whole, difference, backWithin))
	now := time.Now()
	if err := sleep(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	st.expectNone("after that, no answer came from another cluster", wrong(st.runs, now, from(s.home.Name)))
	return nil
}

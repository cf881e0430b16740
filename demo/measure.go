package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/datapath"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// Measured is what `strait demo measure` writes: one number per round, in milliseconds.
type Measured struct {
	// FailoverMS is the time from when the last endpoint of a cluster is not ready, until the pod and
	// the host of a node there both have an answer to a call that began after that.
	FailoverMS []float64 `json:"failover_ms"`
	// DrainMS is the time from the start of `strait cluster drain` until no node sends new connections
	// to the cluster.
	DrainMS []float64 `json:"drain_ms"`
}

// measureCommand is the hidden command by which `make bench` measures a whole clusterset.
func measureCommand(o *options) *cobra.Command {
	rounds := 5
	c := &cobra.Command{
		Use: "measure FILE", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := findBinaries()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP, syscall.SIGTERM)
			defer stop()
			own := *o
			own.size = lab.Size{Clusters: 3, Nodes: 2}
			var m Measured
			res := &Result{Steps: []*Step{}}
			err = playInLab(ctx, own, b, &printer{w: io.Discard}, res, func(ctx context.Context, s *scenario) error {
				return s.measureAll(ctx, rounds, &m)
			})
			if err != nil {
				return err
			}
			text, err := json.Marshal(m)
			if err != nil {
				return err
			}
			return os.WriteFile(args[0], append(text, '\n'), 0o644)
		},
	}
	c.Flags().IntVar(&rounds, "rounds", rounds, "how often to measure each")
	return c
}

// heldOpen is how many connections stay open while the cluster is drained, to be counted.
const heldOpen = 3

// holdCommand is the hidden command that opens connections and keeps them.
func holdCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hold ADDRESS:PORT", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for range heldOpen {
				c, err := net.Dial("tcp", args[0])
				if err != nil {
					return err
				}
				defer c.Close()
			}
			<-cmd.Context().Done()
			return nil
		},
	}
}

// hold opens connections to the home cluster's pods, which are the only ones that its nodes use now.
func (s *scenario) hold(ctx context.Context) error {
	node := s.home.Nodes[0].Name
	_, err := s.Start(lab.Command{
		Place: lab.Place{Node: node, Pod: lab.Client}, Log: filepath.Join(s.NodeDir(node), "hold.log"),
		Argv: []string{s.strait, "demo", "hold", netip.AddrPortFrom(s.ip, 80).String()},
	})
	if err != nil {
		return err
	}
	return sleep(ctx, time.Second)
}

// wantOpen checks that each node counts its open connections to the drained cluster.
func (s *scenario) wantOpen(ctx context.Context) error {
	for i, n := range s.home.Nodes {
		want := 0
		if i == 0 {
			want = heldOpen
		}
		status, err := s.api(n.Name).Status(ctx)
		if err != nil {
			return err
		}
		for _, c := range status.Clusters {
			if c.Name == s.home.Name && (c.Open == nil || *c.Open != want) {
				text, _ := json.Marshal(c)
				return fmt.Errorf("%s says %s, want %d open connections", n.Name, text, want)
			}
		}
	}
	return nil
}

func (s *scenario) measureAll(ctx context.Context, rounds int, m *Measured) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.answer(ctx); err != nil {
		return err
	}
	if !s.ip.IsValid() || s.whole == nil {
		return errors.New("no ClusterSetIP works everywhere")
	}
	for range rounds {
		ms, err := s.measureFailover(ctx)
		if err != nil {
			return fmt.Errorf("failover: %w", err)
		}
		m.FailoverMS = append(m.FailoverMS, ms)
	}
	if err := s.hold(ctx); err != nil {
		return err
	}
	if err := s.useAllAlike(ctx); err != nil {
		return err
	}
	for range rounds {
		ms, err := s.measureDrain(ctx)
		if err != nil {
			return fmt.Errorf("drain: %w", err)
		}
		m.DrainMS = append(m.DrainMS, ms)
	}
	return nil
}

// measureFailover takes all pods of the home cluster away, and brings them back.
func (s *scenario) measureFailover(ctx context.Context) (ms float64, err error) {
	var st Step
	runs, err := s.call(&st, s.home.Nodes[0], traffic.Order{Target: s.serveURL(), EveryMS: 4})
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, 400*time.Millisecond); err != nil {
		return 0, err
	}
	t0, err := s.writeReady(s.home.Name, s.home.Nodes, false)
	if err != nil {
		return 0, err
	}
	t1, err := firstRight(ctx, runs, t0, endpointGoneWithin, notFrom(s.home.Name))
	if err = errors.Join(err, stopAll(ctx, runs)); err != nil {
		return 0, err
	}
	if _, err := s.writeReady(s.home.Name, s.home.Nodes, true); err != nil {
		return 0, err
	}
	return millis(t1.Sub(t0)), s.wholeAgain(ctx)
}

// useAllAlike makes every node use the pods of all clusters, so that a drain concerns all of them.
func (s *scenario) useAllAlike(ctx context.Context) error {
	weights := strings.Join(s.clusterNames(), "=1,") + "=1"
	for _, c := range s.Clusters {
		path := filepath.Join(manifestDir(s.Lab, c.Name), "serve.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		alike := strings.Replace(string(text), "metadata:\n", "metadata:\n  annotations:\n    service.strait.io/weights: "+weights+"\n", 1)
		if err := writeFile(path, alike, 0o644); err != nil {
			return err
		}
	}
	all := s.pods(s.Nodes(), lab.Serve)
	_, err := s.maps.when(ctx, s.Nodes(), backWithin, func(_ lab.Node, fs []datapath.Frontend) bool {
		for _, pod := range all {
			if !holds(fs, pod) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("use the pods of all clusters: %w", err)
	}
	if err := sleep(ctx, 2*backWithin/3); err != nil { // traffic returns little by little
		return err
	}
	s.whole, err = s.maps.snapshot(s.Nodes())
	return err
}

// measureDrain drains the home cluster while every node calls, and undrains it. No call may fail.
func (s *scenario) measureDrain(ctx context.Context) (ms float64, err error) {
	var st Step
	for _, n := range s.Nodes() {
		if _, err := s.call(&st, n, traffic.Order{Target: s.serveURL(), EveryMS: 40}); err != nil {
			return 0, err
		}
	}
	if err := sleep(ctx, 400*time.Millisecond); err != nil {
		return 0, err
	}
	gone := s.servePods(s.home.Name)
	t0 := time.Now()
	drained := make(chan error, 1)
	go func() { drained <- s.cluster(ctx, "drain") }()
	t1, err := s.maps.when(ctx, s.Nodes(), backWithin, func(_ lab.Node, fs []datapath.Frontend) bool { return !holdsAny(fs, gone) })
	err = errors.Join(err, <-drained, sleep(ctx, 500*time.Millisecond), stopAll(ctx, st.runs))
	if err != nil {
		return 0, err
	}
	if late := wrong(st.runs, t1, notFrom(s.home.Name)); len(late) > 0 {
		return 0, fmt.Errorf("after the drain: %s", strings.Join(late, "; "))
	}
	for _, run := range st.runs {
		for _, c := range run.Calls() {
			if !c.OK() {
				return 0, fmt.Errorf("a call from %s failed: %s", run.From(), c.Err)
			}
		}
	}
	if err := s.wantOpen(ctx); err != nil {
		return 0, err
	}
	if err := s.cluster(ctx, "undrain"); err != nil {
		return 0, err
	}
	return millis(t1.Sub(t0)), s.wholeAgain(ctx)
}

// cluster runs `strait cluster drain` or undrain for the home cluster.
func (s *scenario) cluster(ctx context.Context, verb string) error {
	out, err := exec.CommandContext(ctx, s.strait, "cluster", verb, s.home.Name,
		"--manifest", manifestDir(s.Lab, s.home.Name), "--socket", socketFile(s.Lab, s.home.Nodes[0].Name)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("strait cluster %s %s: %w:\n%s", verb, s.home.Name, err, out)
	}
	return nil
}

func (s *scenario) wholeAgain(ctx context.Context) error {
	if left := s.maps.again(ctx, s.whole, difference, backWithin); len(left) > 0 {
		return fmt.Errorf("the maps are not as they were: %s", strings.Join(left, "; "))
	}
	return nil
}

func stopAll(ctx context.Context, runs []*traffic.Run) error {
	var errs []error
	for _, run := range runs {
		errs = append(errs, run.Stop(ctx))
	}
	return errors.Join(errs...)
}

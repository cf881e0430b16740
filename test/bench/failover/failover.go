// Package failover measures how fast a whole clusterset turns away from a cluster: when its last
// pod is not ready, and when it is drained.
//
// Inputs are the programs strait and straitd, in one directory. It runs `strait demo up`, uses that
// clusterset as a user could (YAML, the daemons' API, the pinned maps, commands), and removes it.
// The outputs are times. It must know nothing of the daemons' inside.
package failover

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// The names of what is measured, in milliseconds.
const (
	// FailoverMS is the time from when the last endpoint of a cluster is not ready, until the pod and
	// the host of a node there both have an answer to a call that began after that.
	FailoverMS = "failover_ms"
	// DrainMS is the time from the start of `strait cluster drain` until no node sends new connections
	// to the cluster.
	DrainMS = "drain_ms"
)

// Limits on what is waited for, on a busy machine.
const (
	goneWithin = 1500 * time.Millisecond
	backWithin = 15 * time.Second
)

// size is that of the clusterset.
var size = lab.Size{Clusters: 3, Nodes: 2}

// service is what is called; every cluster of the demo has it.
const service = "default/serve"

// clusterset is a demo that is up.
type clusterset struct {
	*lab.Lab
	strait string
	// home is the cluster that is turned away from, and ip the ClusterSetIP that its pods are behind.
	home lab.Cluster
	ip   netip.Addr
	clients
	// whole is what the maps hold while nothing is wrong.
	whole snapshot
}

// Measure measures each time so often, with the program strait and a directory for the clusterset.
func Measure(ctx context.Context, strait, dir string, rounds int) (ms map[string][]float64, err error) {
	up := command(ctx, strait, "demo", "up", "--dir", dir, "--clusters", strconv.Itoa(size.Clusters), "--nodes", strconv.Itoa(size.Nodes))
	if out, err := up.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("strait demo up: %w:\n%s", err, out) // it has removed what it made
	}
	defer func() {
		if out, e := command(context.WithoutCancel(ctx), strait, "demo", "down", "--dir", dir).CombinedOutput(); e != nil {
			err = errors.Join(err, fmt.Errorf("strait demo down: %w:\n%s", e, out))
		}
	}()
	l, err := lab.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	c := &clusterset{Lab: l, strait: strait, home: l.Clusters[0]}
	defer c.clients.close()
	return c.measure(ctx, rounds)
}

// command prepares a command that can clean up when ctx ends.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd
}

func (c *clusterset) measure(ctx context.Context, rounds int) (map[string][]float64, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	ms := map[string][]float64{}
	for range rounds {
		took, err := c.failover(ctx)
		if err != nil {
			return nil, fmt.Errorf("failover: %w", err)
		}
		ms[FailoverMS] = append(ms[FailoverMS], millis(took))
	}
	if err := c.hold(ctx); err != nil {
		return nil, err
	}
	if err := c.useAllAlike(ctx); err != nil {
		return nil, err
	}
	for range rounds {
		took, err := c.drain(ctx)
		if err != nil {
			return nil, fmt.Errorf("drain: %w", err)
		}
		ms[DrainMS] = append(ms[DrainMS], millis(took))
	}
	return ms, nil
}

// begin finds the ClusterSetIP, starts the clients, and notes what the maps hold.
func (c *clusterset) begin(ctx context.Context) error {
	services, err := c.api(c.home.Nodes[0]).Services(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(services.Items, func(s api.Service) bool { return s.Name == service && len(s.IPs) > 0 })
	if i < 0 {
		return fmt.Errorf("%s has no ClusterSetIP", service)
	}
	c.ip = services.Items[i].IPs[0]
	if err := c.clients.start(c.Lab, c.strait); err != nil {
		return err
	}
	c.whole, err = c.maps()
	return err
}

func (c *clusterset) api(n lab.Node) *client.Client { return client.OnSocket(c.socket(n)) }

func (c *clusterset) socket(n lab.Node) string {
	return filepath.Join(c.NodeDir(n.Name), "run", "strait.sock")
}

func (c *clusterset) manifests(cluster string) string {
	return filepath.Join(c.Dir, cluster, "manifests")
}

// failover takes all pods of the home cluster away, and brings them back.
func (c *clusterset) failover(ctx context.Context) (took time.Duration, err error) {
	runs, err := c.call(c.home.Nodes[0], traffic.Order{Target: c.url(), EveryMS: 4})
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, 400*time.Millisecond); err != nil {
		return 0, err
	}
	t0, err := c.setReady(false)
	if err != nil {
		return 0, err
	}
	t1, err := c.answeredElsewhere(ctx, runs, t0)
	if err = errors.Join(err, stop(ctx, runs)); err != nil {
		return 0, err
	}
	if _, err := c.setReady(true); err != nil {
		return 0, err
	}
	return t1.Sub(t0), c.wholeAgain(ctx)
}

// drain drains the home cluster while every node calls, and undrains it. No call may fail.
func (c *clusterset) drain(ctx context.Context) (took time.Duration, err error) {
	var runs []*traffic.Run
	for _, n := range c.Nodes() {
		more, err := c.call(n, traffic.Order{Target: c.url(), EveryMS: 40})
		if err != nil {
			return 0, err
		}
		runs = append(runs, more...)
	}
	if err := sleep(ctx, 400*time.Millisecond); err != nil {
		return 0, err
	}
	gone := c.pods(c.home.Nodes)
	t0 := time.Now()
	drained := make(chan error, 1)
	go func() { drained <- c.command(ctx, "drain") }()
	t1, err := c.when(ctx, func(held frontends) bool { return !slices.ContainsFunc(gone, held.have) })
	err = errors.Join(err, <-drained, sleep(ctx, 500*time.Millisecond), stop(ctx, runs))
	if err != nil {
		return 0, err
	}
	if bad := c.bad(runs, t1); len(bad) > 0 {
		return 0, errors.New(strings.Join(bad, "; "))
	}
	if err := c.wantOpen(ctx); err != nil {
		return 0, err
	}
	if err := c.command(ctx, "undrain"); err != nil {
		return 0, err
	}
	return t1.Sub(t0), c.wholeAgain(ctx)
}

// command runs `strait cluster drain` or undrain for the home cluster.
func (c *clusterset) command(ctx context.Context, verb string) error {
	out, err := command(ctx, c.strait, "cluster", verb, c.home.Name,
		"--manifest", c.manifests(c.home.Name), "--socket", c.socket(c.home.Nodes[0])).CombinedOutput()
	if err != nil {
		return fmt.Errorf("strait cluster %s %s: %w:\n%s", verb, c.home.Name, err, out)
	}
	return nil
}

func millis(d time.Duration) float64 { return math.Round(float64(d.Microseconds())/100) / 10 }

// errNever reports that something did not happen in time.
var errNever = errors.New("did not happen in time")

// poll calls done until it returns true. It returns errNever after the limit.
func poll(ctx context.Context, limit, every time.Duration, done func() bool) error {
	for deadline := time.Now().Add(limit); !done(); {
		if time.Now().After(deadline) {
			return errNever
		}
		if err := sleep(ctx, every); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/daemon/api/client"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

// readyWithin limits how long a daemon takes to be ready, and how long all nodes take to hear each
// other.
const readyWithin = 30 * time.Second

// clusterset is the lab and the processes in it: a straitd per node, servers, and a client in each
// client pod and on each node.
type clusterset struct {
	*lab.Lab
	strait, straitd string // binaries

	mu      sync.Mutex
	daemons map[string]*lab.Process
	clients map[lab.Place]*traffic.Driver
	// collect waits for the goroutines that collect the clients' reports.
	collect sync.WaitGroup
	// hangUp holds the clients' stdin; closing one ends its client.
	hangUp []io.Closer
}

func newClusterset(l *lab.Lab, b binaries) *clusterset {
	return &clusterset{
		Lab: l, strait: b.strait, straitd: b.straitd,
		daemons: map[string]*lab.Process{}, clients: map[lab.Place]*traffic.Driver{},
	}
}

// close ends the clients. The lab kills everything else.
func (cs *clusterset) close() {
	for _, c := range cs.hangUp {
		_ = c.Close() // a pipe to a process that has perhaps exited
	}
	cs.collect.Wait()
}

// start starts everything and waits until all daemons are ready.
func (cs *clusterset) start(ctx context.Context) error {
	for _, n := range cs.Nodes() {
		if err := cs.startNode(n); err != nil {
			return err
		}
	}
	var g errgroup.Group
	for _, n := range cs.Nodes() {
		g.Go(func() error { return cs.waitReady(ctx, n.Name) })
	}
	return g.Wait()
}

// startNode starts the processes of a node, pods first.
func (cs *clusterset) startNode(n lab.Node) error {
	for _, p := range n.Pods {
		place := lab.Place{Node: n.Name, Pod: p.Kind}
		if p.Kind == lab.Client {
			if err := cs.startClient(place); err != nil {
				return err
			}
			continue
		}
		_, err := cs.Start(lab.Command{
			Place: place,
			Argv: []string{cs.strait, "demo", "serve", "--cluster", n.Cluster, "--node", n.Name, "--pod", p.Name,
				"--address", p.Addr.String()},
			Log: filepath.Join(cs.NodeDir(n.Name), p.Name+".log"),
		})
		if err != nil {
			return err
		}
	}
	if err := cs.startClient(lab.Place{Node: n.Name}); err != nil {
		return err
	}
	return cs.startDaemon(n.Name)
}

func (cs *clusterset) startClient(place lab.Place) error {
	in, orders, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	reports, out, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("make pipe: %w", err), in.Close(), orders.Close())
	}
	_, err = cs.Start(lab.Command{
		Place: place, Names: true, Stdin: in, Stdout: out,
		Argv: []string{cs.strait, "demo", "client"},
		Log:  filepath.Join(cs.NodeDir(place.Node), "client.log"),
	})
	// The child has its own copies of these descriptors by now.
	if err := errors.Join(err, in.Close(), out.Close()); err != nil {
		return errors.Join(err, orders.Close(), reports.Close())
	}
	driver := traffic.NewDriver(place.String(), orders)
	cs.collect.Go(func() {
		defer reports.Close()
		_ = driver.Collect(reports) // an error ends its runs, whose Wait reports it
	})
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.clients[place] = driver
	cs.hangUp = append(cs.hangUp, orders)
	return nil
}

func (cs *clusterset) startDaemon(node string) error {
	p, err := cs.Start(lab.Command{
		Place: lab.Place{Node: node}, Cgroup: "straitd",
		Argv: []string{cs.straitd, "--config", configFile(cs.Lab, node)},
		Log:  logFile(cs.Lab, node),
	})
	if err != nil {
		return err
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.daemons[node] = p
	return nil
}

// killDaemon kills a node's straitd and nothing else: its tunnel process keeps running.
func (cs *clusterset) killDaemon(node string) error {
	cs.mu.Lock()
	p := cs.daemons[node]
	cs.mu.Unlock()
	return p.Kill()
}

func (cs *clusterset) api(node string) *client.Client {
	return client.OnSocket(socketFile(cs.Lab, node))
}

// waitReady waits until a node's daemon is ready.
func (cs *clusterset) waitReady(ctx context.Context, node string) error {
	cs.mu.Lock()
	p := cs.daemons[node]
	cs.mu.Unlock()
	waiting := "it does not answer yet"
	err := poll(ctx, readyWithin, 20*time.Millisecond, func() bool {
		select {
		case <-p.Done:
			return true
		default:
		}
		status, err := cs.api(node).Status(ctx)
		if err == nil {
			waiting = strings.Join(status.Waiting, ", ")
		}
		return err == nil && status.Ready
	})
	select {
	case <-p.Done:
		return fmt.Errorf("straitd on node %s exited (%w); the end of its log:\n%s", node, endOf(p), cs.tail(node))
	default:
	}
	if errors.Is(err, errNever) {
		return fmt.Errorf("straitd on node %s is not ready after %s: %s; the end of its log:\n%s", node, readyWithin, waiting, cs.tail(node))
	}
	return err
}

func endOf(p *lab.Process) error {
	if p.Err == nil {
		return errors.New("exit status 0")
	}
	return p.Err
}

// tail returns the last lines of a node's straitd.log, indented.
func (cs *clusterset) tail(node string) string {
	text, err := os.ReadFile(logFile(cs.Lab, node))
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-12):]
	return "  " + strings.Join(lines, "\n  ")
}

// reboot brings back a powered-off node as a booting machine: its memory is gone, its disk is kept.
func (cs *clusterset) reboot(ctx context.Context, c lab.Cluster, n lab.Node) error {
	if err := cs.Remove(n); err != nil {
		return err
	}
	if err := cs.AddNode(c, n); err != nil {
		return err
	}
	if err := cs.startNode(n); err != nil {
		return err
	}
	return cs.waitReady(ctx, n.Name)
}

// writeReady sets the readiness of the given nodes' endpoints in the YAML of a cluster's Service
// serve. t0 is taken just before the file is replaced.
func (cs *clusterset) writeReady(cluster string, nodes []lab.Node, ready bool) (t0 time.Time, err error) {
	path := filepath.Join(manifestDir(cs.Lab, cluster), "serve.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return t0, fmt.Errorf("read YAML of cluster %s: %w", cluster, err)
	}
	changed := string(text)
	for _, n := range nodes {
		pod, _ := n.Pod(lab.Serve)
		if changed, err = setReady(changed, pod.Addr, ready); err != nil {
			return t0, fmt.Errorf("%s: %w", path, err)
		}
	}
	t0 = time.Now()
	return t0, writeFile(path, changed, 0o644)
}

// errNever reports that an awaited condition did not become true in time.
var errNever = errors.New("did not happen in time")

// poll calls done until it returns true. It returns errNever after the limit.
func poll(ctx context.Context, limit, every time.Duration, done func() bool) error {
	deadline := time.Now().Add(limit)
	for {
		if done() {
			return nil
		}
		if time.Now().After(deadline) {
			return errNever
		}
		if err := sleep(ctx, every); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

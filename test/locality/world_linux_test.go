// Package locality sends real traffic through real daemons, and compares where the backends counted
// connections with what strait explains: when pods, links, clusters and distances change.
//
// A world is three clusters of one node each, in network namespaces, joined by a router and by tunnels.
// The backends are in the test's own process, so they count themselves. The callers are processes in
// pods. Input is straitd and strait, built from the source, and YAML. It must not know how strait chooses.
package locality

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/fabric"
	"strait.io/strait/internal/testutil"
)

// patience is how long a busy machine may take until something has taken effect.
const patience = 30 * time.Second

// world is a clusterset. Every cluster has the Service default/serve, with as many pods as it is given.
type world struct {
	*testing.T
	id   int64
	core string // the namespace of the router
	bin  string
	// near is where the callers are.
	near, west, central *cluster
	counts              *counts
}

var worlds atomic.Int64

// cluster is a node, with a namespace for itself and one for its pods.
type cluster struct {
	w          *world
	name       string
	number     byte
	node, pods string // namespaces
	cgroup     string
	dir, bpf   string
	device     string
	service    service
	daemon     *daemon
}

// daemon is one life of straitd.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// programs builds strait and straitd, and returns their directory.
var programs = testutil.Programs("locality")

func TestMain(m *testing.M) {
	if order := os.Getenv(callerEnv); order != "" {
		if err := beCaller(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if os.Geteuid() == 0 {
		if dir, err := programs(); err == nil {
			os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// newWorld starts three clusters, each with a number of pods, and waits until the callers' node hears
// all of them and uses its own pods.
func newWorld(t *testing.T, pods int) *world {
	t.Helper()
	testutil.NeedTun(t)
	if _, err := exec.LookPath("ip"); err != nil {
		testutil.Missing(t, "needs ip: run `make setup` as root")
	}
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, id: worlds.Add(1), bin: bin, counts: newCounts()}
	w.core = w.namespace("core")
	w.must(fabric.MakeRouter(w.core))
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(w.id)}, 32))
	w.near, w.west, w.central = w.cluster("us-east", 1), w.cluster("us-west", 2), w.cluster("eu-central", 3)
	for _, c := range w.clusters() {
		c.write("gossip.key", key)
		c.service = service{ready: pods, all: pods, annotations: map[string]string{}}
		c.apply()
		c.serve(pods)
		c.start()
	}
	w.settles(shares{"us-east": 1})
	testutil.Eventually(t, patience, func() error {
		status, err := w.near.api().Status(t.Context())
		if err != nil {
			return err
		}
		for _, c := range status.Clusters {
			if c.Alive != 1 || len(status.Clusters) != 3 {
				return fmt.Errorf("%s: %d alive of %d clusters", c.Name, c.Alive, len(status.Clusters))
			}
		}
		return nil
	})
	return w
}

func (w *world) clusters() []*cluster { return []*cluster{w.near, w.west, w.central} }

func (w *world) must(errs ...error) {
	w.Helper()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
}

// namespace makes a named network namespace until the test ends.
func (w *world) namespace(name string) string {
	w.Helper()
	ns := fmt.Sprintf("strait-t-%d-%d-%s", os.Getpid(), w.id, name)
	forget := testutil.AtInterrupt(func() { _ = fabric.RemoveNS(ns) })
	w.Cleanup(func() {
		forget()
		if err := fabric.RemoveNS(ns); err != nil {
			w.Error(err)
		}
	})
	w.must(fabric.AddNS(ns))
	return ns
}

// in runs a command in a namespace.
func (w *world) in(ns string, argv ...string) {
	w.Helper()
	out, err := exec.Command("ip", append([]string{"netns", "exec", ns}, argv...)...).CombinedOutput()
	if err != nil {
		w.Fatalf("%s in %s: %v\n%s", strings.Join(argv, " "), ns, err, out)
	}
}

// cluster makes the namespaces of a cluster, and plugs them together.
func (w *world) cluster(name string, number byte) *cluster {
	w.Helper()
	c := &cluster{w: w, name: name, number: number, dir: w.TempDir(), bpf: testutil.BPFFS(w), cgroup: testutil.Cgroup(w),
		device: fmt.Sprintf("stl%d-%d%d", os.Getpid()%1_000_000, w.id, number)}
	c.node, c.pods = w.namespace(name), w.namespace(name+"-pods")
	w.must(fabric.MakeRouter(c.node),
		fabric.AddCable(fabric.End{NS: c.node, Link: "eth0"}, fabric.End{NS: w.core, Link: c.port()}),
		fabric.AddCable(fabric.End{NS: c.pods, Link: "eth0"}, fabric.End{NS: c.node, Link: "pods0"}))
	w.in(w.core, "ip", "addr", "add", c.underlay(1).String()+"/24", "dev", c.port())
	w.in(c.node, "ip", "addr", "add", c.underlay(2).String()+"/24", "dev", "eth0")
	w.in(c.node, "ip", "route", "add", "default", "via", c.underlay(1).String())
	w.in(c.node, "ip", "addr", "add", c.pod(1).String()+"/24", "dev", "pods0")
	w.in(c.pods, "ip", "addr", "add", c.pod(2).String()+"/24", "dev", "eth0")
	w.in(c.pods, "ip", "route", "add", "default", "via", c.pod(1).String())
	c.write("manifests/node.yaml", fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {topology.kubernetes.io/region: %[1]s, topology.kubernetes.io/zone: %[1]sa}
spec: {podCIDRs: [%[2]s]}
status: {addresses: [{type: InternalIP, address: %[3]s}]}
`, name, netip.PrefixFrom(c.pod(0), 24), c.underlay(2)))
	w.Cleanup(c.end)
	return c
}

// port is the router's end of the cluster's cable.
func (c *cluster) port() string { return fmt.Sprintf("c%d", c.number) }

func (c *cluster) underlay(host byte) netip.Addr {
	return netip.AddrFrom4([4]byte{172, 31, c.number, host})
}
func (c *cluster) pod(host byte) netip.Addr { return netip.AddrFrom4([4]byte{10, c.number, 1, host}) }

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }
func (c *cluster) socket() string          { return c.path("run/strait.sock") }
func (c *cluster) pins() string            { return filepath.Join(c.bpf, "strait") }
func (c *cluster) api() *client.Client     { return client.OnSocket(c.socket()) }

// write replaces a file as a careful operator does.
func (c *cluster) write(name, text string) {
	c.w.Helper()
	c.w.must(testutil.Replace(c.path(name), text))
}

// start starts the cluster's daemon.
func (c *cluster) start() {
	c.w.Helper()
	config, err := json.Marshal(map[string]any{ // which is YAML too
		"cluster": c.name, "node": "n1", "source": map[string]any{"manifest": c.path("manifests")},
		"stateDir": c.path("state"), "runDir": c.path("run"),
		"bpf": map[string]any{"pins": c.pins(), "cgroup": c.cgroup, "allowVirtualRoot": true,
			"maxFrontends": 64, "maxBackends": 1024, "maxSockets": 1024},
		"gossip": map[string]any{"bind": netip.AddrPortFrom(c.underlay(2), 7946), "keyFile": c.path("gossip.key"),
			"seeds": []string{netip.AddrPortFrom(c.w.near.underlay(2), 7946).String()}},
		"mesh":    map[string]any{"mode": "wireguard", "device": c.device},
		"metrics": map[string]any{"listen": "off"},
	})
	c.w.must(err)
	c.write("strait.yaml", string(config))
	log, err := os.OpenFile(c.path("straitd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	c.w.must(err)
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.w.bin, "straitd"), "--config", c.path("strait.yaml"))
	cmd.Stdout, cmd.Stderr = log, log
	c.daemon = &daemon{cmd, make(chan struct{})}
	c.w.must(c.begin(c.node, cmd))
	go func(d *daemon) {
		_ = d.cmd.Wait() // it is killed in the end
		close(d.done)
	}(c.daemon)
}

// begin starts a process in a namespace and in the cluster's cgroup.
func (c *cluster) begin(ns string, cmd *exec.Cmd) error {
	cgroup, err := os.Open(c.cgroup)
	if err != nil {
		return err
	}
	defer cgroup.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
	return fabric.InsideNamed(ns, cmd.Start)
}

// kill kills the daemon and leaves the tunnel.
func (c *cluster) kill() {
	c.w.Helper()
	_ = c.daemon.cmd.Process.Kill() // an error means that it is dead already
	<-c.daemon.done
}

// end kills everything of the cluster, with the process of its tunnel.
func (c *cluster) end() {
	if c.w.Failed() {
		text, _ := os.ReadFile(c.path("straitd.log"))
		lines := strings.Split(string(text), "\n")
		c.w.Logf("log of %s:\n%s", c.name, strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
	if err := fabric.KillCgroup(context.Background(), c.cgroup); err != nil {
		c.w.Error(err)
	}
	_ = os.Remove("/var/run/wireguard/" + c.device + ".sock") // there is none with the kernel's WireGuard
}

// strait runs the CLI against the cluster's daemon.
func (c *cluster) strait(args ...string) string {
	c.w.Helper()
	out, err := exec.Command(filepath.Join(c.w.bin, "strait"), append(args, "--socket", c.socket())...).CombinedOutput()
	if err != nil {
		c.w.Fatalf("strait %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// cut takes the cluster's cable away, and plug brings it back.
func (c *cluster) cut()  { c.w.in(c.w.core, "ip", "link", "set", c.port(), "down") }
func (c *cluster) plug() { c.w.in(c.w.core, "ip", "link", "set", c.port(), "up") }

// run runs a part of a test in a world that is whole: all pods are ready, and nothing is annotated.
func (w *world) run(name string, part func()) {
	w.T.Run(name, func(t *testing.T) {
		outer := w.T
		w.T = t
		defer func() { w.T = outer }()
		for _, c := range w.clusters() {
			c.service = service{ready: c.service.all, all: c.service.all, annotations: map[string]string{}}
			c.apply()
		}
		w.settles(shares{w.near.name: 1})
		part()
	})
}

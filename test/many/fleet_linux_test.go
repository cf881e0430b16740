package many

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/testutil"
)

const (
	clusters, perCluster = 5, 12
	all                  = clusters * perCluster
	// seeds is how many nodes of each cluster are seeds, as docs/configuration.md recommends.
	seeds = 2
	port  = 7946
	// patience is how long a busy machine may take for anything.
	patience = time.Minute
)

// programs builds strait and straitd, and returns their directory.
var programs = testutil.Programs("many")

// programsEnv names the directory of the programs to the inner process.
const programsEnv = "STRAIT_MANY_PROGRAMS"

// fleet is a clusterset of real daemons.
type fleet struct {
	*testing.T
	dir      string
	clusters []*cluster
	nodes    []*node
}

type cluster struct {
	f     *fleet
	index byte // from 1
	name  string
	nodes []*node
}

// node is a machine: a namespace, a cgroup, and a daemon.
type node struct {
	*cluster
	number int // from 1, in its cluster
	// uplink is the router's end of its cable, a network of two addresses.
	uplink netip.Prefix
	dir    string
	cmd    *exec.Cmd // nil while no daemon runs
	exited chan error
	meter  *http.Client // for its metrics
	// pod is the last byte of the address of its pod.
	pod     byte
	changed time.Time
}

func (n *node) origin() string   { return n.cluster.name + "/" + n.name() }
func (n *node) name() string     { return fmt.Sprintf("n%02d", n.number) }
func (n *node) netns() string    { return n.cluster.name + "-" + n.name() }
func (n *node) addr() netip.Addr { return n.uplink.Addr().Next() }
func (n *node) podAddr() netip.Addr {
	return netip.AddrFrom4([4]byte{10, n.index, byte(n.number), n.pod})
}
func (n *node) path(f string) string { return filepath.Join(n.dir, f) }
func (c *cluster) path(f string) string {
	return filepath.Join(c.f.dir, c.name, f)
}

// newFleet makes all machines, and starts nothing yet.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	// t.TempDir can be longer than a socket's path may be. The outer process removes this if it is interrupted.
	f := &fleet{T: t, dir: filepath.Join(os.Getenv(programsEnv), "fleet")}
	for i, name := range []string{"us-east", "us-west", "eu-central", "ap-south", "sa-east"} {
		c := &cluster{f: f, index: byte(i + 1), name: name}
		for n := range perCluster {
			m := &node{
				cluster: c, number: n + 1, dir: c.path(fmt.Sprintf("n%02d", n+1)), pod: 1,
				uplink: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, c.index, byte(4*n + 1)}), 30),
			}
			m.meter = m.meters()
			c.nodes = append(c.nodes, m)
		}
		f.clusters, f.nodes = append(f.clusters, c), append(f.nodes, c.nodes...)
	}
	f.cable()
	f.write()
	t.Cleanup(f.end)
	return f
}

func (f *fleet) must(errs ...error) {
	f.Helper()
	if err := errors.Join(errs...); err != nil {
		f.Fatal(err)
	}
}

// write writes what the daemons read: keys, pins, manifests and configurations.
func (f *fleet) write() {
	var key gossipkey.Key
	_, _ = rand.Read(key[:]) // never fails
	pins := authority.Pins{}
	for _, c := range f.clusters {
		root, err := authority.Generate(rand.Reader)
		f.must(err)
		for _, n := range c.nodes {
			f.must(os.MkdirAll(n.path("state"), 0o700), os.MkdirAll(c.path("manifests"), 0o755))
			n.publish()
		}
		name := clustermesh.ClusterName(c.name)
		pins[name] = authority.Pin{
			Cluster: name, Roots: []authority.PublicKey{root.Public()}, Namespaces: []string{"*"},
			Pods:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, c.index, 0, 0}), 16)},
			Nodes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, c.index, 0}), 24)},
		}
		f.must(testutil.Replace(c.path("root.key"), root.Base64()), testutil.Replace(c.path("manifests/cluster.yaml"), c.manifest()))
	}
	f.must(testutil.Replace(f.file("gossip.key"), gossipkey.Ring{key}.Text()), testutil.Replace(f.file("pins.yaml"), string(pins.Encode())))
	for _, n := range f.nodes {
		config, err := json.Marshal(n.config()) // which is YAML too
		f.must(err, testutil.Replace(n.path("strait.yaml"), string(config)))
	}
}

func (f *fleet) file(name string) string { return filepath.Join(f.dir, name) }

// manifest is what a cluster has besides the pods of its nodes.
func (c *cluster) manifest() string {
	var b strings.Builder
	b.WriteString(`apiVersion: v1
kind: Service
metadata: {name: serve}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: serve}
`)
	for _, n := range c.nodes {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {topology.kubernetes.io/region: %s, topology.kubernetes.io/zone: %s%c}}
spec: {podCIDRs: [10.%d.%d.0/24]}
status: {addresses: [{type: InternalIP, address: %s}]}
`, n.name(), c.name, c.name, "abc"[n.number%3], c.index, n.number, n.addr())
	}
	return b.String()
}

// publish writes which pod the node has.
func (n *node) publish() {
	n.f.Helper()
	n.f.must(testutil.Replace(n.cluster.path("manifests/serve-"+n.name()+".yaml"), fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: serve-%s, labels: {kubernetes.io/service-name: serve}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [%s], nodeName: %s}]
`, n.name(), n.podAddr(), n.name())))
}

// config is the node's configuration.
func (n *node) config() map[string]any {
	var at []string
	for _, c := range n.f.clusters {
		for _, s := range c.nodes[:seeds] {
			at = append(at, netip.AddrPortFrom(s.addr(), port).String())
		}
	}
	return map[string]any{
		"cluster": n.cluster.name, "node": n.name(), "source": map[string]any{"manifest": n.cluster.path("manifests")},
		"stateDir": n.path("state"), "runDir": n.path("run"),
		"bpf": map[string]any{
			"pins": filepath.Join(n.f.file("bpf"), n.netns()), "cgroup": n.cgroup(), "allowVirtualRoot": true,
			"maxFrontends": 256, "maxBackends": 1024, "maxSockets": 256,
		},
		"gossip":    map[string]any{"bind": netip.AddrPortFrom(n.addr(), port), "keyFile": n.f.file("gossip.key"), "seeds": at},
		"authority": map[string]any{"rootFile": n.cluster.path("root.key"), "pinsFile": n.f.file("pins.yaml")},
		"mesh":      map[string]any{"mode": "off"},
	}
}

// start starts the node's daemon.
func (n *node) start() {
	n.f.Helper()
	cgroup, err := os.Open(n.cgroup())
	n.f.must(err)
	defer cgroup.Close()
	log, err := os.OpenFile(n.path("straitd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	n.f.must(err)
	defer log.Close()
	n.cmd = exec.Command(filepath.Join(os.Getenv(programsEnv), "straitd"), "--config", n.path("strait.yaml"))
	n.cmd.Stdout, n.cmd.Stderr = log, log
	// Sixty collectors of garbage, each of which starts threads, would take half of two processors.
	n.cmd.Env = append(os.Environ(), "GOGC=800", "GOMAXPROCS=1")
	// The processes of a test that is killed die with it.
	n.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd()), Pdeathsig: syscall.SIGKILL}
	n.f.must(inside(n.netns(), n.cmd.Start))
	cmd, exited := n.cmd, make(chan error, 1)
	n.exited = exited
	go func() { exited <- cmd.Wait() }()
}

// kill kills the node's daemon as kill -9 does.
func (n *node) kill() {
	n.f.Helper()
	n.f.must(n.cmd.Process.Kill())
	<-n.exited
	n.cmd = nil
}

// end kills all daemons, and shows what they warned of if the test has failed.
func (f *fleet) end() {
	warnings := 0
	for _, n := range f.nodes {
		if n.cmd != nil {
			n.kill()
		}
		if !f.Failed() || warnings > 60 {
			continue
		}
		text, _ := os.ReadFile(n.path("straitd.log"))
		for line := range bytes.Lines(text) {
			if !bytes.Contains(line, []byte("level=INFO")) && warnings < 60 {
				warnings++
				f.Logf("%s: %s", n.origin(), bytes.TrimSpace(line))
			}
		}
	}
}

// each calls a function for nodes, some at a time, and returns some of its errors.
func each(nodes []*node, do func(context.Context, *node) error) error {
	errs := make([]error, len(nodes))
	room := make(chan struct{}, 2*runtime.NumCPU())
	var running sync.WaitGroup
	for i, n := range nodes {
		running.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := do(ctx, n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.origin(), err)
			}
		})
	}
	running.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if many := len(errs) - 3; many > 0 {
		errs = append(errs[:3], fmt.Errorf("and %d more", many))
	}
	return errors.Join(errs...)
}

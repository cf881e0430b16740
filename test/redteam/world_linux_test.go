// Package redteam attacks real daemons, one test for each row of the promise in SECURITY.md: a stranger
// without any key, or with the gossip key alone, a node that was taken over, a cluster that was taken
// over, and accidents.
//
// Runbooks for what to do afterwards are tested too. Inputs are strait and straitd, built from the
// source, and attackers in the test's own process, which speak gossip with whatever keys their row
// gives them. What is looked at is what people would: the kernel's maps, what the daemons say, and how
// they fare.
package redteam

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// patience is how long a busy machine may take to say or do something.
const patience = time.Minute

// port is that of all gossip; each daemon has a loopback address of its own.
const port = 7946

// world is a clusterset of west and east, each with the node n1. East shares the Service default/serve.
// West has no pods of it, so its node balances over all that it believes.
type world struct {
	*testing.T
	programs   string // the directory of strait and straitd
	keys       gossipkey.Ring
	roots      map[string]authority.PrivateKey
	pins       authority.Pins
	west, east *member
}

// member is a real daemon.
type member struct {
	w       *world
	cluster string
	node    string
	number  byte
	dir     string
	bpf     string
	cgroup  string
	log     *lines
	pid     int
	stop    func()
	// clock is what the machine's clock shows too much; nil if it has the clock of all others.
	clock *testutil.Clock
	// config is what its configuration has besides.
	config map[string]any
}

// programs builds strait and straitd, and returns their directory.
var programs = testutil.Programs("redteam")

// programsEnv names the directory of the programs to the inner process of a test.
const programsEnv = "STRAIT_REDTEAM_PROGRAMS"

func TestMain(m *testing.M) {
	if beOutsider() {
		return
	}
	code := m.Run()
	if testutil.InsideCgroup() == "" {
		if dir, err := programs(); err == nil {
			os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// inside runs a test in namespaces of its own, in parallel with others; see testutil.Inside.
func inside(t *testing.T) bool {
	t.Helper()
	usePrograms(t)
	return testutil.InsideParallel(t, 0)
}

// insideAlone is inside for a test that compares times. No other test of this package runs beside it.
func insideAlone(t *testing.T) bool {
	t.Helper()
	usePrograms(t)
	return testutil.Inside(t, 0)
}

// usePrograms builds the programs for the inner processes of all tests.
func usePrograms(t *testing.T) {
	t.Helper()
	if testutil.InsideCgroup() != "" {
		return
	}
	testutil.NeedRoot(t)
	dir, err := programs()
	if err == nil {
		err = os.Setenv(programsEnv, dir) // not t.Setenv: the tests are parallel, and set the same
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pods and nodes are the ranges of the cluster with a number.
func pods(number byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, number, 0, 0}), 16)
}
func machine(number byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, number}) }
func pod(number byte) netip.Addr     { return netip.AddrFrom4([4]byte{10, number, 1, 7}) }
func gossipOf(number byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, number}), port)
}

// The numbers of the clusters.
const (
	westNumber, eastNumber = 1, 2
	mallory                = 66 // the attacker's own cluster
)

// gossipKeys are those of all daemons.
var gossipKeys = gossipkey.Ring{gossipkey.Key(bytes.Repeat([]byte{7}, gossipkey.Size))}

// rootOf returns the root key of a cluster.
func rootOf(cluster string) authority.PrivateKey { return sha256.Sum256([]byte("root of " + cluster)) }

// newWorld starts both daemons and waits until both balance over east's pod. Clusters are pinned
// besides west and east.
func newWorld(t *testing.T, more map[string]byte) *world {
	t.Helper()
	w := &world{T: t, programs: os.Getenv(programsEnv), keys: gossipKeys, roots: map[string]authority.PrivateKey{}, pins: authority.Pins{}}
	clusters := map[string]byte{"west": westNumber, "east": eastNumber}
	for c, n := range more {
		clusters[c] = n
	}
	for c, n := range clusters {
		w.roots[c] = rootOf(c)
		w.pins[clustermesh.ClusterName(c)] = authority.Pin{
			Cluster: clustermesh.ClusterName(c), Roots: []authority.PublicKey{w.roots[c].Public()}, Namespaces: []string{"default"},
			Pods: []netip.Prefix{pods(n)}, Nodes: []netip.Prefix{netip.PrefixFrom(machine(n), 32)},
		}
	}
	w.west, w.east = w.member("west", westNumber), w.member("east", eastNumber)
	w.west.start()
	w.east.start()
	w.west.balances(pod(eastNumber))
	w.east.balances(pod(eastNumber))
	return w
}

func (w *world) must(errs ...error) {
	w.Helper()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) member(cluster string, number byte) *member {
	w.Helper()
	m := &member{w: w, cluster: cluster, node: "n1", number: number, dir: w.TempDir(), bpf: testutil.BPFFS(w), cgroup: testutil.Cgroup(w), log: &lines{}}
	root := w.roots[cluster]
	m.write("root.key", root.Base64())
	m.write("gossip.key", w.keys.Text())
	m.write("pins.yaml", string(w.pins.Encode()))
	m.write("manifests/node.yaml", manifestNode(number, ""))
	if number == eastNumber {
		m.write("manifests/serve.yaml", manifestServe(pod(number)))
	}
	return m
}

func manifestNode(number byte, prefixes string) string {
	annotation := ""
	if prefixes != "" {
		annotation = ", annotations: {strait.io/prefixes: \"" + prefixes + "\"}"
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: n1%s}\nspec: {podCIDRs: [10.%d.1.0/24]}\nstatus: {addresses: [{type: InternalIP, address: %s}]}\n",
		annotation, number, machine(number))
}

func manifestServe(pod netip.Addr) string {
	return `apiVersion: v1
kind: Service
metadata: {name: serve}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: serve-1, labels: {kubernetes.io/service-name: serve}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [` + pod.String() + `], nodeName: n1}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: serve}
`
}

func (m *member) path(name string) string { return filepath.Join(m.dir, name) }
func (m *member) pinned() string          { return filepath.Join(m.bpf, "strait") }

// write replaces a file as a careful operator does.
func (m *member) write(name, text string) {
	m.w.Helper()
	m.w.must(testutil.Replace(m.path(name), text))
}

// start starts straitd. It ends with the test, or by stop.
func (m *member) start() {
	m.w.Helper()
	settings := map[string]any{
		"cluster": m.cluster, "node": m.node, "source": map[string]any{"manifest": m.path("manifests")},
		"stateDir": m.path("state"), "runDir": m.path("run"),
		"bpf": map[string]any{"pins": m.pinned(), "cgroup": m.cgroup, "allowVirtualRoot": true,
			"maxFrontends": 1024, "maxBackends": 4096, "maxSockets": 256},
		"gossip":    map[string]any{"bind": gossipOf(m.number), "keyFile": m.path("gossip.key"), "seeds": []string{gossipOf(westNumber).String()}},
		"authority": m.authority(),
		"mesh":      map[string]any{"mode": "off"},
		"metrics":   map[string]any{"listen": "off"},
	}
	maps.Copy(settings, m.config)
	config, err := json.Marshal(settings) // which is YAML too
	m.w.must(err)
	m.write("strait.yaml", string(config))
	cmd := m.straitd("--config", m.path("strait.yaml"))
	cmd.Stdout, cmd.Stderr = m.log, m.log
	m.w.must(cmd.Start())
	m.pid = cmd.Process.Pid
	m.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // an error means that it is dead already
		_ = cmd.Wait()
	})
	m.w.Cleanup(func() {
		m.stop()
		if m.w.Failed() {
			m.w.Logf("log of %s:\n%s", m.cluster, m.log)
		}
	})
}

// authority is what the configuration says of the root, if the member has it, and of the pins.
func (m *member) authority() map[string]any {
	out := map[string]any{"pinsFile": m.path("pins.yaml")}
	if _, err := os.Stat(m.path("root.key")); err == nil {
		out["rootFile"] = m.path("root.key")
	}
	return out
}

// backends are the addresses that the kernel balances over, of all frontends, without the self-test's.
func (m *member) backends() (out []netip.Addr, err error) {
	frontends, err := inspect.Read(m.pinned())
	for _, f := range frontends {
		for _, b := range f.Backends {
			if !b.IP.IsLoopback() && !slices.Contains(out, b.IP) {
				out = append(out, b.IP)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out, err
}

// balances waits until the kernel balances over these addresses and no other.
func (m *member) balances(want ...netip.Addr) {
	m.w.Helper()
	testutil.Eventually(m.w, patience, func() error {
		got, err := m.backends()
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s balances over %v, want %v", m.cluster, got, want)
		}
		return err
	})
}

// frontends are the addresses that the kernel answers at.
func (m *member) frontends() string {
	m.w.Helper()
	all, err := inspect.Read(m.pinned())
	m.w.must(err)
	var out []string
	for _, f := range all {
		out = append(out, f.Addr.String())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (m *member) status() (*api.Status, error) {
	ctx, cancel := context.WithTimeout(m.w.Context(), 2*time.Second)
	defer cancel()
	return client.OnSocket(m.path("run/strait.sock")).Status(ctx)
}

// says waits until one problem in the status has all the words.
func (m *member) says(words ...string) {
	m.w.Helper()
	testutil.Eventually(m.w, patience, func() error {
		s, err := m.status()
		if err != nil {
			return err
		}
		var all []string
		for _, p := range s.Problems {
			line := strings.Join([]string{string(p.Code), p.File, p.Object, p.Field, p.Message, p.Try}, ": ")
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return nil
			}
			all = append(all, line)
		}
		return fmt.Errorf("%s: no problem has all of %q:\n%s", m.cluster, words, strings.Join(all, "\n"))
	})
}

// saysNot waits until no problem in the status has the word. Problems stay for 30 s.
func (m *member) saysNot(word string) {
	m.w.Helper()
	testutil.Eventually(m.w, 3*patience, func() error {
		s, err := m.status()
		if err == nil && slices.ContainsFunc(s.Problems, func(p problem.Problem) bool { return strings.Contains(string(p.Code)+p.Message, word) }) {
			err = fmt.Errorf("%s still says %s", m.cluster, word)
		}
		return err
	})
}

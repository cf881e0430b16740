package faults

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/testutil"
)

// tree is a config as YAML has it.
type tree = map[string]any

// patience is how long a busy machine may take to say or do something.
const patience = 20 * time.Second

// machine is a node: a network namespace, a cgroup, a bpffs and a directory.
type machine struct {
	dir    string
	ns     *testutil.Namespace
	cgroup string
	config tree
	number int
	// wrap is the command that runs straitd, as a container's runtime does; usually none.
	wrap []string
	// clock is the machine's; nil if it is that of the test.
	clock *testutil.Clock
}

func service(name string) string {
	return `apiVersion: v1
kind: Service
metadata: {name: ` + name + `}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ` + name + `-1, labels: {kubernetes.io/service-name: ` + name + `}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.9.9.9], nodeName: n1}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: ` + name + `}
`
}

func node(name, addr string) string {
	return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\nstatus: {addresses: [{type: InternalIP, address: " + addr + "}]}\n"
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	testutil.NeedRoot(t)
	m := &machine{dir: t.TempDir(), ns: testutil.NetNS(t), number: 1}
	m.setUp(t, "n1", testutil.BPFFS(t))
	return m
}

// another is a second node in the namespace of the first, of another cluster.
func (m *machine) another(t *testing.T, name string, number int) *machine {
	t.Helper()
	o := &machine{dir: t.TempDir(), ns: m.ns, number: number}
	o.setUp(t, name, testutil.BPFFS(t))
	o.config["cluster"] = fmt.Sprintf("c%d", number)
	o.config["gossip"].(tree)["seeds"] = []string{"127.0.0.1:7946"}
	return o
}

func (m *machine) setUp(t *testing.T, name, bpffs string) {
	t.Helper()
	m.cgroup = testutil.Cgroup(t)
	addr := fmt.Sprintf("127.0.0.%d", m.number)
	m.write(t, "manifests/serve.yaml", service("serve"))
	m.write(t, "manifests/node.yaml", node(name, "192.0.2.1"))
	m.newKey(t)
	m.config = tree{
		"cluster": "c1", "node": name,
		"source":   tree{"manifest": m.path("manifests")},
		"stateDir": m.path("state"), "runDir": m.path("run"),
		"bpf": tree{"pins": filepath.Join(bpffs, "strait"), "cgroup": m.cgroup, "allowVirtualRoot": true,
			"maxFrontends": 64, "maxBackends": 256, "maxSockets": 256},
		"gossip":  tree{"bind": addr + ":7946", "keyFile": m.path("gossip.key")},
		"mesh":    tree{"mode": "off"},
		"metrics": tree{"listen": addr + ":9964"},
	}
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) pins() string { return m.config["bpf"].(tree)["pins"].(string) }

func (m *machine) write(t *testing.T, name, text string) {
	t.Helper()
	if err := testutil.Replace(m.path(name), text); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) newKey(t *testing.T) {
	t.Helper()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	m.write(t, "gossip.key", base64.StdEncoding.EncodeToString(key))
}

// occupy takes a port of the namespace until it is freed, or the test ends.
func (m *machine) occupy(t *testing.T, network, addr string) (free func()) {
	t.Helper()
	var c io.Closer
	err := m.ns.Do(func() (err error) {
		if network == "udp" {
			c, err = net.ListenPacket(network, addr)
		} else {
			c, err = net.Listen(network, addr)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	free = sync.OnceFunc(func() { c.Close() })
	t.Cleanup(free)
	return free
}

// frontends are those in the kernel, without the self-test's on loopback.
func (m *machine) frontends() (out []string, err error) {
	fs, err := inspect.Read(m.pins())
	for _, f := range slices.DeleteFunc(fs, func(f datapath.Frontend) bool { return f.Addr.IP.IsLoopback() }) {
		out = append(out, f.Addr.String())
	}
	return out, err
}

func (m *machine) holds(t *testing.T, want string) {
	t.Helper()
	if got, err := m.frontends(); err != nil || !slices.Contains(got, want) {
		t.Fatalf("the kernel holds %v (%v), want %s", got, err, want)
	}
}

func (m *machine) eventuallyHolds(t *testing.T, want string) {
	t.Helper()
	testutil.Eventually(t, patience, func() error {
		got, err := m.frontends()
		if err == nil && !slices.Contains(got, want) {
			err = fmt.Errorf("the kernel holds %v, want %s", got, want)
		}
		return err
	})
}

var programs = testutil.Programs("faults")

// straitd returns the daemon's file, and its environment; nil is the test's.
func (m *machine) straitd() (file string, env []string, err error) {
	if m.clock == nil {
		file, err = build()
		return file, nil, err
	}
	dir, err := programs()
	if err == nil {
		err = buildClock()
	}
	return filepath.Join(dir, "straitd-clock"), append(os.Environ(), m.clock.Env()), err
}

// buildClock builds the daemon whose clock can be set, beside the other programs.
var buildClock = sync.OnceValue(func() error {
	dir, err := programs()
	if err != nil {
		return err
	}
	return testutil.BuildClock(dir)
})

// build returns straitd's file.
func build() (string, error) {
	dir, err := programs()
	return filepath.Join(dir, "straitd"), err
}

func TestMain(m *testing.M) {
	if backends := os.Getenv(podEnv); backends != "" {
		if err := runPod(backends); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if file, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

// process is one life of straitd on a machine.
type process struct {
	m    *machine
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{}
}

func (m *machine) start(t *testing.T) *process {
	t.Helper()
	file, env, err := m.straitd()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m.config) // which is YAML too
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, "strait.yaml", string(text))
	cgroup, err := os.Open(m.cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer cgroup.Close()
	args := append(slices.Clone(m.wrap), file, "--config", m.path("strait.yaml"))
	p := &process{m: m, cmd: exec.Command(args[0], args[1:]...), log: &logBuffer{}, done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
	if err := m.ns.Do(p.cmd.Start); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill(t)
		if t.Failed() {
			t.Logf("log of straitd:\n%s", p.log)
		}
	})
	return p
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	p.cmd.Process.Kill() // an error means that it is dead already
	<-p.done
}

// stop ends the process as systemd does; it saves what it knows.
func (p *process) stop(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatal("still runs")
	}
}

// says waits for one line of the log, or of the status, that holds all the words.
func (p *process) says(t *testing.T, words ...string) {
	t.Helper()
	testutil.Eventually(t, patience, func() error {
		lines := strings.Split(p.log.String(), "\n")
		if s, err := p.status(); err == nil {
			for _, x := range s.Problems {
				lines = append(lines, strings.Join([]string{string(x.Code), x.File, x.Object, x.Field, x.Message, x.Try}, ": "))
			}
		}
		for _, line := range lines {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return nil
			}
		}
		return fmt.Errorf("no line has all of %q", words)
	})
}

func (p *process) dies(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
		if p.cmd.ProcessState.Success() {
			t.Error("exit code 0")
		}
	case <-time.After(patience):
		t.Error("still runs")
	}
}

func (p *process) answers(t *testing.T) {
	t.Helper()
	testutil.Eventually(t, patience, func() error {
		_, err := p.status()
		return err
	})
}

func (p *process) status() (*api.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return client.OnSocket(p.m.path("run/strait.sock")).Status(ctx)
}

// logBuffer takes what a process writes while others read it.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Package leader runs straitd of two or three clusters against real API servers without nodes, and looks at what their leaders
// write there: what depends on the API server and not on traffic.
//
// Inputs are the source, of which it builds strait, and the programs in the cache. c1 and c3 are IPv4, c2 dual-stack. strait is
// installed by its CLI, and the daemons write with the rights of the account that this makes. What needs nodes is
// tested in test/kube.
package leader

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

const (
	// within is how long what must happen may take on a busy machine.
	within  = 40 * time.Second
	account = "system:serviceaccount:strait-system:strait-leader"
	// clusters are the lab's, of which a world may have fewer.
	clusters = 3
)

type tree = map[string]any

// world is some clusters with a daemon each.
type world struct {
	*testing.T
	lab *kubelab.Lab
	dir string
	ns  string
	// clusters are c1, c2 and so on.
	clusters []kubelab.Cluster
	// straitd are the daemons, by cluster.
	straitd map[string]*exec.Cmd
}

// newWorld is one of two clusters, as newWorldOf makes it.
func newWorld(t *testing.T, kubernetes tree, edits ...func(config tree)) *world {
	t.Helper()
	return newWorldOf(t, 2, kubernetes, edits...)
}

// newWorldOf installs strait and starts a daemon for each of so many clusters; kubernetes is how they are configured
// besides, and edits change the rest. In each there is a namespace of the test's own.
func newWorldOf(t *testing.T, size int, kubernetes tree, edits ...func(config tree)) *world {
	t.Helper()
	lab := apiserver.Lab(t, clusters)
	w := &world{T: t, lab: lab, clusters: lab.Topology.Clusters[:size], dir: t.TempDir(), straitd: map[string]*exec.Cmd{},
		ns: strings.ToLower(t.Name()) + time.Now().Format("-150405")}
	w.must(os.WriteFile(filepath.Join(w.dir, "gossip.key"), []byte(strings.Repeat("A", 43)+"="), 0o600))
	w.install()
	for _, c := range w.clusters {
		w.configure(c, kubernetes, edits)
		w.start(c.Name)
		t.Cleanup(func() { w.stop(c.Name) })
	}
	for _, c := range w.clusters {
		w.namespace(c.Name, w.ns)
	}
	return w
}

var installed sync.Once

// install builds strait, and does what its CLI does, once, in all clusters of the lab.
func (w *world) install() {
	w.Helper()
	installed.Do(func() {
		w.must(os.MkdirAll(w.bin(""), 0o755))
		// As make build does, so that what it compiled is not compiled again.
		build := exec.CommandContext(w.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", w.bin(""),
			"strait.io/strait/cmd/straitd", "strait.io/strait/cmd/strait")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			w.Fatalf("build strait: %v: %s", err, out)
		}
		for _, c := range w.lab.Topology.Clusters {
			w.run(w.bin("strait"), "install", "--kubeconfig", w.lab.Kubeconfig(), "--context", c.Name,
				"--cluster", "of-"+c.Name, "--set", "admissionPolicy=true", "--set", "mesh.mode=off")
		}
	})
}

// bin is the path of one of strait's programs; all tests share them, and they go with the lab.
func (w *world) bin(name string) string { return filepath.Join(w.lab.Dir, "strait", name) }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) run(args ...string) {
	w.Helper()
	if out, err := exec.CommandContext(w.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
		w.Fatalf("%q: %v: %s", args, err, out)
	}
}

// namespace makes one that goes with the test.
func (w *world) namespace(cluster, name string) {
	w.Helper()
	w.kubectl(cluster, "create", "namespace", name)
	w.undo(cluster, "delete", "namespace", name, "--timeout=60s")
}

// undo runs kubectl when the test ends, while the daemons still run.
func (w *world) undo(cluster string, args ...string) {
	w.Cleanup(func() {
		if _, err := w.lab.Kubectl(context.Background(), cluster, nil, args...); err != nil {
			w.Errorf("undo: %v", err)
		}
	})
}

var serverLine = regexp.MustCompile(`"server": "[^"]*"`)

// configure writes a cluster's configuration. Its daemon lives where the API servers do, and writes as the account
// that install made.
func (w *world) configure(c kubelab.Cluster, kubernetes tree, edits []func(config tree)) {
	w.Helper()
	cluster := c.Name
	var seeds []string
	for _, other := range w.clusters {
		seeds = append(seeds, other.Gateway.String()+":7946")
	}
	text, err := os.ReadFile(w.lab.ConfigOf(cluster))
	w.must(err)
	text = serverLine.ReplaceAll(text, fmt.Appendf(nil, `"server": "https://%s:6443"`, c.Gateway))
	text = []byte(strings.Replace(string(text), `"user": {`, `"user": {"as": "`+account+`",`, 1))
	kubeconfig := filepath.Join(w.dir, cluster+".kubeconfig")
	w.must(os.WriteFile(kubeconfig, text, 0o600))
	config := tree{
		"cluster": "of-" + cluster, "node": cluster + "-node",
		"source":   tree{"kubernetes": tree{"kubeconfig": kubeconfig}},
		"stateDir": filepath.Join(w.dir, cluster, "state"), "runDir": filepath.Join(w.dir, cluster, "run"),
		"clustersetCIDRs": []string{"241.0.0.0/8", "fd00:5354::/64"},
		"bpf":             tree{"pins": filepath.Join(testutil.BPFFS(w), "strait"), "cgroup": testutil.Cgroup(w), "allowVirtualRoot": true},
		"gossip":          tree{"bind": c.Gateway.String() + ":7946", "keyFile": filepath.Join(w.dir, "gossip.key"), "seeds": seeds},
		"mesh":            tree{"mode": "off", "table": 5400 + c.Index},
		"metrics":         tree{"listen": "off"},
	}
	maps.Copy(config["source"].(tree)["kubernetes"].(tree), kubernetes)
	for _, edit := range edits {
		edit(config)
	}
	w.write(cluster, config)
}

func (w *world) write(cluster string, config tree) {
	w.Helper()
	text, err := json.Marshal(config) // which is YAML too
	w.must(err)
	w.must(os.MkdirAll(filepath.Join(w.dir, cluster), 0o755))
	w.must(os.WriteFile(w.config(cluster), text, 0o600))
}

func (w *world) config(cluster string) string { return filepath.Join(w.dir, cluster, "strait.yaml") }

// change changes the Kubernetes part of a cluster's configuration and starts its daemon anew.
func (w *world) change(cluster string, kubernetes tree) {
	w.Helper()
	text, err := os.ReadFile(w.config(cluster))
	w.must(err)
	var config tree
	w.must(json.Unmarshal(text, &config))
	maps.Copy(config["source"].(tree)["kubernetes"].(tree), kubernetes)
	w.stop(cluster)
	w.write(cluster, config)
	w.start(cluster)
}

func (w *world) start(cluster string) {
	w.Helper()
	log, err := os.OpenFile(filepath.Join(w.dir, cluster, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	w.must(err)
	defer log.Close()
	cmd := exec.Command("nsenter", "--net=/run/netns/"+w.lab.Name+"-fabric", w.bin("straitd"), "--config", w.config(cluster))
	cmd.Stdout, cmd.Stderr = log, log
	w.must(cmd.Start())
	w.straitd[cluster] = cmd
}

func (w *world) stop(cluster string) {
	w.Helper()
	cmd := w.straitd[cluster]
	if cmd == nil {
		return
	}
	w.straitd[cluster] = nil
	err := cmd.Process.Signal(syscall.SIGTERM)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil || w.Failed() {
		text, _ := os.ReadFile(filepath.Join(w.dir, cluster, "log"))
		w.Errorf("straitd of %s: %v; its log ends with:\n%s", cluster, err, text[max(0, len(text)-4000):])
	}
}

// kubectl returns what is printed.
func (w *world) kubectl(cluster string, args ...string) string {
	w.Helper()
	out, err := w.lab.Kubectl(w.Context(), cluster, nil, args...)
	w.must(err)
	return strings.TrimSpace(out)
}

func (w *world) apply(cluster, yaml string) {
	w.Helper()
	_, err := w.lab.Kubectl(w.Context(), cluster, []byte(yaml), "-n", w.ns, "apply", "-f", "-")
	w.must(err)
}

// refused tries what must be refused, with the words that say why.
func (w *world) refused(cluster, stdin, words string, args ...string) {
	w.Helper()
	out, err := w.lab.Kubectl(w.Context(), cluster, []byte(stdin), args...)
	if err == nil || !strings.Contains(err.Error(), words) {
		w.Errorf("kubectl %q: %q, %v; want it refused with %q", args, out, err, words)
	}
}

// becomes waits until kubectl prints what is wanted: columns by a jsonpath.
func (w *world) becomes(cluster, object, jsonpath, want string) {
	w.Helper()
	w.until(cluster, want, "-n", w.ns, "get", object, "-o", "jsonpath="+jsonpath)
}

func (w *world) until(cluster, want string, args ...string) {
	w.Helper()
	testutil.Eventually(w, within, func() error {
		got, err := w.lab.Kubectl(w.Context(), cluster, nil, args...)
		if err == nil && strings.TrimSpace(got) != want {
			err = fmt.Errorf("%s: kubectl %q: %q, want %q", cluster, args, strings.TrimSpace(got), want)
		}
		return err
	})
}

// slices are the EndpointSlices that strait wrote for a service: whose they are, of which family, with which addresses.
func (w *world) slices(cluster string, want ...string) {
	w.Helper()
	testutil.Eventually(w, within, func() error {
		text, err := w.lab.Kubectl(w.Context(), cluster, nil, "-n", w.ns, "get", "endpointslices", "-l", "endpointslice.kubernetes.io/managed-by=strait.io", "-o",
			`jsonpath={range .items[*]}{.metadata.labels.kubernetes\.io/service-name}{.metadata.labels.multicluster\.kubernetes\.io/service-name}`+
				` {.metadata.labels.multicluster\.kubernetes\.io/source-cluster} {.addressType} {.endpoints[*].addresses[*]}{"\n"}{end}`)
		if err != nil {
			return err
		}
		got := strings.Split(strings.TrimSpace(text), "\n")
		if text == "" {
			got = nil
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: slices %q, want %q", cluster, got, want)
		}
		return nil
	})
}

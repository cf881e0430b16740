// Package cni tests strait beside CNIs that other projects make: flannel, kube-router, Cilium.
//
// Input is a lab of test/kubelab: two clusters of two nodes each. The environment variable
// STRAIT_TEST_CNI names pairs of CNIs, as `make test-cni` does. It must not know how a CNI is built
// or started.
package cni

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/apiserver"
)

// pairs are the CNIs of the two clusters. The first pair is the quickest to build, and runs if
// STRAIT_TEST_CNI is not set; test/kube has bridge and ptp. The value "all" is for all of them,
// other values are such pairs, separated by spaces.
var pairs = []string{
	"c1=flannel-vxlan,c2=flannel-host-gw",
	"c1=kube-router,c2=bridge",
	"c1=cilium,c2=cilium-no-proxy",
	"c1=cilium-bpf-masquerade,c2=cilium-native",
	"c1=cilium-no-conntrack,c2=cilium-host-sockets",
}

// untracked is the CNI whose nodes get no answers from other clusters' pods, and strait reports it.
const untracked = "cilium-no-conntrack"

// world is the lab with strait in it.
type world struct {
	*kubelab.Lab
	strait kubelab.Strait
}

// TestCNI: whatever the clusters' CNIs, each cluster's Services answer in the other one; also after
// the CNI has restarted, after nodes have rebooted with strait's pods on them, and after the CNI's
// configuration has changed. Uninstalling leaves nothing behind, and the CNI works on.
func TestCNI(t *testing.T) {
	chosen := pairs[:1]
	switch value := os.Getenv("STRAIT_TEST_CNI"); value {
	case "":
	case "all":
		chosen = pairs
	default:
		chosen = strings.Fields(value)
	}
	for _, pair := range chosen {
		t.Run(pair, func(t *testing.T) { testPair(t, pair) })
	}
}

func testPair(t *testing.T, pair string) {
	w := up(t, pair)
	w.serve(t)
	for _, part := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Calls", w.calls}, {"CNIRestarts", w.restarts}, {"NodeStarts", w.reboots}, {"StraitFirst", w.straitFirst},
		{"CNIChanges", w.reconfigure}, {"Uninstall", w.uninstall},
	} {
		if !t.Run(part.name, part.test) {
			return // so that the state that failed can be printed
		}
	}
}

// up brings the lab up with strait in it, and takes it down when the test ends.
func up(t *testing.T, pair string) world {
	t.Helper()
	o := apiserver.Options(t)
	o.Clusters, o.Nodes, o.CNIs = 2, 2, map[string]kubelab.CNI{}
	cnis, err := kubelab.ParseCNIs(pair)
	must(t, err)
	for cluster, name := range cnis {
		o.CNIs[cluster], err = kubelab.BuildCNI(t.Context(), name, o.Source, os.Stderr)
		apiserver.Must(t, err)
	}
	start := time.Now()
	l, err := apiserver.Up(o)
	apiserver.Must(t, err)
	w := world{Lab: l}
	t.Cleanup(func() {
		if t.Failed() {
			w.tell(t)
		}
		must(t, l.Down(context.Background()))
		_ = os.Remove(filepath.Dir(l.Dir)) // fails while it holds other labs
	})
	lab := time.Since(start)
	w.strait, err = kubelab.BuildStrait(t.Context(), o.Source, filepath.Join(o.Dir, "strait"))
	must(t, err)
	must(t, l.InstallStrait(t.Context(), w.strait))
	t.Logf("the lab came up in %.0f s, with strait in %.0f s", lab.Seconds(), time.Since(start).Seconds())
	return w
}

// tell prints what strait and its daemons report.
func (w world) tell(t *testing.T) {
	for _, c := range w.Topology.Clusters {
		for _, args := range [][]string{
			{"get", "pods", "-A", "-o", "wide"},
			{"-n", "strait-system", "exec", "daemonset/strait", "--", "/strait", "status"},
			{"-n", "strait-system", "logs", "-l", "app.kubernetes.io/component=daemon", "--prefix", "--tail=20"},
		} {
			out, err := w.Kubectl(context.Background(), c.Name, nil, args...)
			t.Logf("%s: %v (%v):\n%s", c.Name, args, err, out)
		}
	}
}

// uninstall removes strait from both clusters.
func (w world) uninstall(t *testing.T) {
	for _, c := range w.Topology.Clusters {
		for _, n := range c.Nodes {
			must(t, w.HasTraces(t.Context(), n.Name))
		}
	}
	var g sync.WaitGroup
	for _, c := range w.Topology.Clusters {
		g.Go(func() {
			out, err := exec.CommandContext(t.Context(), w.strait.CLI, "uninstall", "--kubeconfig", w.Kubeconfig(), "--context", c.Name).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", c.Name, err, out)
			}
		})
	}
	g.Wait()
	for _, c := range w.Topology.Clusters {
		for _, n := range c.Nodes {
			out, err := w.Traces(t.Context(), n.Name)
			must(t, err)
			if out != "" {
				t.Errorf("%s: strait left\n%s", n.Name, out)
			}
		}
		for _, p := range w.places(t, c.Name) {
			testutil.Eventually(t, within, func() error {
				return p.hear(curl+w.clusterIP(t, c.Name, "far-"+c.Name)+"/hostname", "server-")
			})
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clusterIP is that of a Service.
func (w world) clusterIP(t *testing.T, cluster, service string) string {
	t.Helper()
	out, err := w.Kubectl(t.Context(), cluster, nil, "get", "service", service, "-o", "jsonpath={.spec.clusterIP}")
	must(t, err)
	if out == "" {
		t.Fatal(fmt.Errorf("%s: Service %s has no ClusterIP", cluster, service))
	}
	return out
}

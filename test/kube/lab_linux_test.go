// Package kube tests strait, and the lab itself, on real Kubernetes clusters: those of test/kubelab.
//
// One lab serves all tests of the package: two clusters with two nodes each, the second without podCIDRs, joined by
// strait. It must not know how the lab is made. Tests of the MCS API (mcs_*) have a namespace each and run side by
// side, after the others.
package kube

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/programs"
)

// shared is the lab of all tests: up when the first asks for it, down at the end.
var shared struct {
	once   sync.Once
	lab    *kubelab.Lab
	err    error
	before machine
	// kept is set for a lab that is not the tests' own.
	kept bool
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.lab != nil && !shared.kept {
		if err := takeDown(); err != nil {
			fmt.Fprintf(os.Stderr, "take the lab down: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// takeDown ends the shared lab, and says what it left on the machine.
func takeDown() error {
	l := shared.lab
	shared.lab = nil
	start := time.Now()
	if err := l.Down(context.Background()); err != nil {
		return err
	}
	fmt.Printf("the lab went down in %.1f s\n", time.Since(start).Seconds())
	_ = os.Remove(filepath.Dir(l.Dir)) // it stays where logs of another lab are in it
	after, err := look(l)
	if err != nil {
		return err
	}
	return after.compare(shared.before)
}

// theLab returns the shared lab, which is up, with strait in it. STRAIT_TEST_LAB names the folder of one that is up
// already, as make kube-lab leaves it: for whoever writes tests.
func theLab(t *testing.T) *kubelab.Lab {
	t.Helper()
	o := options(t)
	shared.once.Do(func() {
		if dir := os.Getenv("STRAIT_TEST_LAB"); dir != "" {
			shared.kept = true
			shared.lab, shared.err = kubelab.Open(dir, o.Log)
			return
		}
		o.Dir = filepath.Join(o.Dir, "shared")
		o.Clusters, o.Nodes, o.WithoutPodCIDRs = 2, 2, []string{"c2"}
		if shared.before, shared.err = look(nil); shared.err != nil {
			return
		}
		start := time.Now()
		if shared.lab, shared.err = kubelab.Up(context.Background(), o); shared.err != nil {
			return
		}
		up := time.Since(start)
		shared.err = installStrait(t, shared.lab, o.Source)
		t.Logf("the lab came up in %.1f s, with strait in %.1f s", up.Seconds(), time.Since(start).Seconds())
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.lab
}

// installStrait builds strait and installs it as a user does.
func installStrait(t *testing.T, l *kubelab.Lab, source string) error {
	s, err := kubelab.BuildStrait(context.Background(), source, t.TempDir())
	if err != nil {
		return err
	}
	return l.InstallStrait(context.Background(), s)
}

// options are those of any lab of the tests, each in a folder below Dir, or the test ends: the programs must have
// been built.
func options(t *testing.T) kubelab.Options {
	t.Helper()
	testutil.NeedRoot(t)
	source, err := programs.Source(t.Context())
	must(t, err)
	missing, err := programs.Missing(source)
	must(t, err)
	if len(missing) > 0 {
		testutil.Missing(t, "needs Kubernetes' programs ("+strings.Join(missing, ", ")+"): run `make test-kube`, which builds them")
	}
	dir, err := programs.Dir(source)
	must(t, err)
	return kubelab.Options{
		// Always the same: what a run that was killed has left is removed by the next.
		Dir: filepath.Join(source, ".lab-test"), Source: source,
		Programs: dir, Log: slog.New(slog.DiscardHandler),
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl and returns what it printed.
func kubectl(t *testing.T, cluster string, args ...string) string {
	t.Helper()
	out, err := theLab(t).Kubectl(t.Context(), cluster, nil, args...)
	must(t, err)
	return out
}

// inPod runs a command of the shell image in a pod.
func inPod(ctx context.Context, l *kubelab.Lab, cluster, pod string, argv ...string) (string, error) {
	return l.Kubectl(ctx, cluster, nil, append([]string{"exec", pod, "--"}, argv...)...)
}

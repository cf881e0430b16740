// Package apiserver gives a package's tests real API servers: clusters of the lab without nodes,
// which are up in seconds.
//
// Inputs are the programs in the cache. Output is a lab that the tests of one package share and
// that is removed when they are done, or only the Options of one, for tests that also need nodes.
// Only tests import it. It must not know what runs against it.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/programs"
)

// shared is the lab of the package's tests. It comes up when the first test calls Lab.
var shared struct {
	once sync.Once
	lab  *kubelab.Lab
	err  error
}

// Main is a package's TestMain. It runs the tests, and takes the lab down if one of them called
// Lab.
func Main(m *testing.M) {
	code := m.Run()
	if l := shared.lab; l != nil {
		if err := l.Down(context.Background()); err != nil {
			fmt.Fprintf(os.Stderr, "take the lab down: %v\n", err)
			code = 1
		}
		_ = os.Remove(filepath.Dir(l.Dir)) // fails while it holds other labs
	}
	os.Exit(code)
}

// Up brings a lab up, and takes it down if the test binary is interrupted, at any moment.
func Up(o kubelab.Options) (*kubelab.Lab, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex // held while the lab comes up
	var l *kubelab.Lab
	mu.Lock()
	defer mu.Unlock()
	testutil.AtInterrupt(func() {
		cancel()
		mu.Lock()
		if l == nil {
			return // it did not come up, so nothing is left to remove
		}
		if err := l.Down(context.Background()); err != nil {
			fmt.Fprintf(os.Stderr, "take the lab down: %v\n", err)
		}
	})
	var err error
	l, err = kubelab.Up(ctx, o)
	return l, err
}

// Lab returns the package's lab of clusters c1, c2 and so on, which have controllers but no nodes.
// c1 has IPv4 ClusterIPs and the newest API server, c2 has both families and the oldest API server,
// and c3 is like the lab's clusters with nodes. All tests of a package
// must pass the same number of clusters. The test is skipped, or fails in CI, if the programs are
// not built.
func Lab(t testing.TB, clusters int) *kubelab.Lab {
	t.Helper()
	o := Options(t)
	shared.once.Do(func() {
		o.Newest = []string{"c1"}
		if o.Clusters = clusters; clusters > 1 {
			o.DualStack, o.Oldest = []string{"c2"}, []string{"c2"}
		}
		shared.lab, shared.err = Up(o)
	})
	Must(t, shared.err)
	return shared.lab
}

// OldCRDs gives a cluster of the lab the MCS API as mcs-api v0.1.0 had it, with v1alpha1 only. When
// the test ends, the newest is back. Every export and import of the cluster goes with it, both
// times.
func OldCRDs(t testing.TB, l *kubelab.Lab, cluster string) {
	t.Helper()
	t.Cleanup(func() { must(t, l.ReplaceCRDs(context.Background(), cluster, kubelab.NewestCRDs())) })
	must(t, l.ReplaceCRDs(t.Context(), cluster, kubelab.OldestCRDs))
}

// ForeignCRDs gives a cluster of the lab the CRDs of OldCRDs as another group and version, beside the
// MCS API.
func ForeignCRDs(t testing.TB, l *kubelab.Lab, cluster, group, version string) {
	t.Helper()
	text := strings.NewReplacer("multicluster.x-k8s.io", group, "v1alpha1", version,
		// An API server refuses CRDs of a group of k8s.io without it.
		"metadata: {name:", `metadata: {annotations: {api-approved.kubernetes.io: "unapproved, for a test"}, name:`).Replace(kubelab.OldestCRDs)
	must(t, l.Apply(t.Context(), cluster, text))
}

// Options returns the options for a lab of the calling package's tests, in the package's own
// folder. The test is skipped, or fails in CI, if the programs are not built. The caller sets the
// sizes. For more than one lab at a time, it also extends Dir.
func Options(t testing.TB) kubelab.Options {
	t.Helper()
	Must(t, kubelab.Fit(1, 0))
	source, err := programs.Source(t.Context())
	must(t, err)
	missing, err := programs.Kubernetes.Missing(source)
	must(t, err)
	if len(missing) > 0 {
		testutil.Missing(t, "needs Kubernetes' programs ("+strings.Join(missing, ", ")+"): run `make test-kube`, which builds them")
	}
	dir, err := programs.Kubernetes.Dir(source)
	must(t, err)
	here, err := os.Getwd() // the package's folder: go test runs its tests there
	must(t, err)
	name, err := filepath.Rel(source, here)
	must(t, err)
	return kubelab.Options{
		// Always the same folder, so that the next run removes what a killed run has left.
		Dir: filepath.Join(source, ".lab-test", strings.ReplaceAll(name, string(filepath.Separator), "-")), Source: source,
		Programs: dir, Log: slog.New(slog.DiscardHandler),
	}
}

// Must ends the test if a lab did not come up. It reports the test as one that this machine cannot
// run if the error is ErrUnfit, and fails it otherwise.
func Must(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, kubelab.ErrUnfit) {
		testutil.Missing(t, err.Error())
	}
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

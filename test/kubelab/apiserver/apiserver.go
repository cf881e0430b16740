// Package apiserver gives a package's tests real API servers: clusters of the lab without nodes, up in seconds.
//
// Input are the programs in the cache; output is a lab that the tests of one package share, which goes when they are
// done; or only the Options of one, for tests that want nodes too. Imported by tests only. It must not know what runs
// against it.
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

// shared is the lab of the package's tests: up when the first asks for it.
var shared struct {
	once sync.Once
	lab  *kubelab.Lab
	err  error
}

// Main is a package's TestMain: it runs the tests, and takes the lab down if one of them asked for it.
func Main(m *testing.M) {
	code := m.Run()
	if l := shared.lab; l != nil {
		if err := l.Down(context.Background()); err != nil {
			fmt.Fprintf(os.Stderr, "take the lab down: %v\n", err)
			code = 1
		}
		_ = os.Remove(filepath.Dir(l.Dir)) // it stays while other labs are in it
	}
	os.Exit(code)
}

// Up brings a lab up that is taken down if the test binary is interrupted, at any moment.
func Up(o kubelab.Options) (*kubelab.Lab, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex // held while it comes up
	var l *kubelab.Lab
	mu.Lock()
	defer mu.Unlock()
	testutil.AtInterrupt(func() {
		cancel()
		mu.Lock()
		if l == nil {
			return // it did not come up, and nothing is left
		}
		if err := l.Down(context.Background()); err != nil {
			fmt.Fprintf(os.Stderr, "take the lab down: %v\n", err)
		}
	})
	var err error
	l, err = kubelab.Up(ctx, o)
	return l, err
}

// Lab returns the package's lab of so many clusters, c1 and on, that have controllers and no nodes. c1 has ClusterIPs of
// IPv4, c2 of both families. All tests of a package want the same number. The test ends where the programs are not built.
func Lab(t testing.TB, clusters int) *kubelab.Lab {
	t.Helper()
	o := Options(t)
	shared.once.Do(func() {
		if o.Clusters = clusters; clusters > 1 {
			o.DualStack = []string{"c2"}
		}
		shared.lab, shared.err = Up(o)
	})
	Must(t, shared.err)
	return shared.lab
}

// Options are those of a lab of the calling package's tests, in a folder of the package's own, or the test ends: the
// programs must have been built. The sizes are the caller's to set; for more than one lab at a time, it adds to Dir.
func Options(t testing.TB) kubelab.Options {
	t.Helper()
	Must(t, kubelab.Fit(1, 0))
	source, err := programs.Source(t.Context())
	must(t, err)
	missing, err := programs.Missing(source)
	must(t, err)
	if len(missing) > 0 {
		testutil.Missing(t, "needs Kubernetes' programs ("+strings.Join(missing, ", ")+"): run `make test-kube`, which builds them")
	}
	dir, err := programs.Dir(source)
	must(t, err)
	here, err := os.Getwd() // go test runs a package's tests in its folder
	must(t, err)
	name, err := filepath.Rel(source, here)
	must(t, err)
	return kubelab.Options{
		// Always the same: what a run that was killed has left is removed by the next.
		Dir: filepath.Join(source, ".lab-test", strings.ReplaceAll(name, string(filepath.Separator), "-")), Source: source,
		Programs: dir, Log: slog.New(slog.DiscardHandler),
	}
}

// Must ends the test where a lab did not come up: as one that this machine cannot run, if that is why.
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

// Package script runs scripts of the form "YAML in, tables out" through strait's own code: the manifest
// decoder, the replication protocol, the plan and the socket load balancer, without gossip's sockets.
//
// Each testdata/*.txtar holds directories of YAML, one a cluster, and commands; see commands_test.go. The same
// script runs on the fake load balancer and, as root, on the kernel's maps.
package script

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// balancer is what a script needs of a load balancer.
type balancer interface {
	Reconcile(want []datapath.Frontend, prune bool) ([]problem.Problem, error)
	Frontends() ([]datapath.Frontend, error)
}

// sizes are those of a load balancer's maps.
type sizes struct{ frontends, backends uint32 }

func TestFake(t *testing.T) {
	run(t, false, func(_ *testing.T, size sizes) balancer {
		return &socklb.Fake{MaxFrontends: size.frontends, MaxBackends: size.backends}
	})
}

func TestKernel(t *testing.T) {
	testutil.NeedRoot(t)
	run(t, true, func(t *testing.T, size sizes) balancer {
		lb, err := socklb.Open(socklb.Config{
			Pins: filepath.Join(testutil.BPFFS(t), "strait"), Cgroup: testutil.Cgroup(t), AllowVirtualRoot: true,
			MaxFrontends: size.frontends, MaxBackends: size.backends, MaxSockets: 1024, Log: testutil.Logger(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lb.Close() })
		return lb
	})
}

// run runs every script in a world of its own. kernel is a condition that scripts may ask for.
func run(t *testing.T, kernel bool, open func(*testing.T, sizes) balancer) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			var inside func(func() error) error
			if kernel {
				inside = testutil.NetNS(t).Do
			}
			testscript.Run(t, testscript.Params{
				Files:               []string{file},
				RequireExplicitExec: true,
				Setup: func(env *testscript.Env) error {
					w := newWorld(env.WorkDir, func(size sizes) balancer { return open(t, size) })
					w.inside = inside
					env.Values[worldKey{}] = w
					return nil
				},
				Condition: func(name string) (bool, error) {
					if name != "kernel" {
						return false, fmt.Errorf("no condition %q", name)
					}
					return kernel, nil
				},
				Cmds: commands,
			})
		})
	}
}

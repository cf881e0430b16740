// Package kube tests strait, and the lab itself, on real Kubernetes clusters: those of
// test/kubelab.
//
// A lab is two clusters with two nodes each, the second without podCIDRs, joined by strait. TestOps
// (ops_*), whose parts stop and kill, has a lab of its own; all other tests share one. So both can
// run at a time, each in a process of its own: make test-ops and make test-kube. Tests that stop
// and kill leave their lab working. Tests of the MCS API (mcs_*) have a namespace each and run side
// by side, after the others. TestObjects has a lab without nodes. This package must not know how a
// lab is made.
package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/apiserver"
)

// shared is a lab of several tests: up when the first asks for it, down at the end.
type shared struct {
	// suffix ends the name of its folder.
	suffix string
	mu     sync.Mutex // held while it comes up
	lab    *kubelab.Lab
	err    error
	before machine
	// kept is set for a lab that is not the tests' own.
	kept bool
	// strait is what was installed in it, unless it is kept.
	strait kubelab.Strait
	// clients starts the client pods.
	clients    sync.Once
	clientsErr error
}

// common is the lab of all tests but TestOps, and opsOnly that of TestOps.
var common, opsOnly = &shared{}, &shared{suffix: "-ops"}

// sharedOf returns the lab of a test, which may not be up yet.
func sharedOf(t testing.TB) *shared {
	if root, _, _ := strings.Cut(t.Name(), "/"); root == "TestOps" {
		return opsOnly
	}
	return common
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range []*shared{common, opsOnly} {
		if s.lab == nil {
			continue
		}
		if code != 0 {
			tellLogs(s.lab)
		}
		if err := s.takeDown(); err != nil {
			fmt.Fprintf(os.Stderr, "take the lab down: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// tellLogs prints what strait's daemons logged last: the machine of CI is gone when people read it.
func tellLogs(l *kubelab.Lab) {
	for _, c := range l.Topology.Clusters {
		out, err := l.Kubectl(context.Background(), c.Name, nil, "-n", "strait-system", "logs", "-l", "app.kubernetes.io/component=daemon",
			"--prefix", "--timestamps", "--tail=40")
		fmt.Printf("strait's daemons in %s (%v):\n%s\n", c.Name, err, out)
	}
}

// takeDown ends the lab unless it is kept, and returns what it left on the machine as an error.
func (s *shared) takeDown() error {
	l := s.lab
	if s.lab = nil; s.kept {
		return nil
	}
	start := time.Now()
	if err := l.Down(context.Background()); err != nil {
		return err
	}
	fmt.Printf("the lab went down in %.1f s\n", time.Since(start).Seconds())
	_ = os.Remove(filepath.Dir(l.Dir)) // it stays where another lab, or the logs of one, are in it
	// Tests of other packages run meanwhile: what they make goes again in a moment.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		after, err := look(l)
		if err == nil {
			err = after.compare(s.before)
		}
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// theLab returns the test's lab, which is up, with strait in it. STRAIT_TEST_LAB names the folder
// of one that is up already, as make kube-lab leaves it, for people who write tests: TestOps and
// all other tests then use that.
func theLab(t *testing.T) *kubelab.Lab {
	t.Helper()
	s := sharedOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lab == nil && s.err == nil {
		o := apiserver.Options(t) // runs go, and this function is called before each command
		o.Dir += s.suffix
		s.err = s.bringUp(t, o)
	}
	apiserver.Must(t, s.err)
	return s.lab
}

func (s *shared) bringUp(t *testing.T, o kubelab.Options) (err error) {
	if dir := os.Getenv("STRAIT_TEST_LAB"); dir != "" {
		s.kept = true
		s.lab, err = kubelab.Open(dir, o.Log)
		return err
	}
	o.Clusters, o.Nodes, o.WithoutPodCIDRs = 2, 2, []string{"c2"}
	if s.before, err = look(nil); err != nil {
		return err
	}
	start := time.Now()
	if s.lab, err = apiserver.Up(o); err != nil {
		return err
	}
	up := time.Since(start)
	s.strait, err = installStrait(s.lab, o.Source, filepath.Join(o.Dir, "strait"))
	t.Logf("the lab came up in %.1f s, with strait in %.1f s", up.Seconds(), time.Since(start).Seconds())
	return err
}

// installStrait builds strait into a folder and installs it as a user does.
func installStrait(l *kubelab.Lab, source, dir string) (kubelab.Strait, error) {
	s, err := kubelab.BuildStrait(context.Background(), source, dir)
	if err != nil {
		return s, err
	}
	return s, l.InstallStrait(context.Background(), s)
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
	return l.InCluster(ctx, cluster, kubelab.Container{Namespace: "default", Pod: pod}, argv...)
}

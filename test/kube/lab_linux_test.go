// Package kube tests strait, and the lab itself, on real Kubernetes clusters: those of test/kubelab.
//
// One lab serves them: two clusters with two nodes each, the second without podCIDRs, joined by strait. Tests that stop
// and kill (TestOps, ops_*, most of all) leave it working. Tests of the MCS API (mcs_*) have a namespace each in it and run
// side by side, after the others. Only TestObjects has a lab of its own, without nodes. It must not know how a lab is made.
package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/apiserver"
)

// shared is the lab of nearly all tests: up when the first asks for it, down at the end.
var shared struct {
	once   sync.Once
	lab    *kubelab.Lab
	err    error
	before machine
	// kept is set for a lab that is not the tests' own.
	kept bool
	// strait is what was installed in it, unless it is kept.
	strait kubelab.Strait
}

func TestMain(m *testing.M) {
	code := m.Run()
	if code != 0 && shared.lab != nil {
		tellLogs(shared.lab)
	}
	if shared.lab != nil && !shared.kept {
		if err := takeDown(); err != nil {
			fmt.Fprintf(os.Stderr, "take the lab down: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// tellLogs prints what strait's daemons said last: on a machine of CI nobody can ask them later.
func tellLogs(l *kubelab.Lab) {
	for _, c := range l.Topology.Clusters {
		out, err := l.Kubectl(context.Background(), c.Name, nil, "-n", "strait-system", "logs", "-l", "app.kubernetes.io/component=daemon",
			"--prefix", "--timestamps", "--tail=40")
		fmt.Printf("strait's daemons in %s (%v):\n%s\n", c.Name, err, out)
	}
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
	// Tests of other packages run meanwhile: what they make goes again in a moment.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		after, err := look(l)
		if err == nil {
			err = after.compare(shared.before)
		}
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// theLab returns the shared lab, which is up, with strait in it. STRAIT_TEST_LAB names the folder of one that is up
// already, as make kube-lab leaves it: for whoever writes tests.
func theLab(t *testing.T) *kubelab.Lab {
	t.Helper()
	o := apiserver.Options(t)
	shared.once.Do(func() {
		if dir := os.Getenv("STRAIT_TEST_LAB"); dir != "" {
			shared.kept = true
			shared.lab, shared.err = kubelab.Open(dir, o.Log)
			return
		}
		o.Clusters, o.Nodes, o.WithoutPodCIDRs = 2, 2, []string{"c2"}
		if shared.before, shared.err = look(nil); shared.err != nil {
			return
		}
		start := time.Now()
		if shared.lab, shared.err = apiserver.Up(o); shared.err != nil {
			return
		}
		up := time.Since(start)
		shared.strait, shared.err = installStrait(shared.lab, o.Source, filepath.Join(o.Dir, "strait"))
		t.Logf("the lab came up in %.1f s, with strait in %.1f s", up.Seconds(), time.Since(start).Seconds())
	})
	apiserver.Must(t, shared.err)
	return shared.lab
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

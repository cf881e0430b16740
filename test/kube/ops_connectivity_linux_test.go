package kube

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// trialNamespace is that of strait connectivity test.
const trialNamespace = "strait-connectivity-test"

// noHostPods is a policy of a cluster that forbids pods in the nodes' own network.
const noHostPods = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-host-pods}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "!has(object.spec.hostNetwork) || !object.spec.hostNetwork", message: no pods in the network of nodes here}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-host-pods}
spec:
  policyName: no-host-pods
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {strait.io/connectivity-test: "true"}}}
`

// trialReport is the part of a report that the test reads.
type trialReport struct {
	Clusters []string
	Results  []struct{ State, From, Kind, To, Way, Protocol, Error string }
	Causes   []struct {
		Code, Message, Try string
		Results            []int
	}
	Skipped     []struct{ Cluster, What, Why string }
	Performance []struct {
		From, To                 string
		Ratio, MegabitsPerSecond float64
		MTU                      int
		Errors                   []string
	}
}

// connectivity runs the test between both clusters, and reads its report.
func (o *ops) connectivity(t *testing.T, more ...string) (r trialReport, code int) {
	t.Helper()
	args := append([]string{"connectivity", "test", "--kubeconfig", o.Kubeconfig(), "--context", "c1", "--context", "c2", "-o", "json"}, more...)
	cmd := exec.CommandContext(t.Context(), o.strait.CLI, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if code = cmd.ProcessState.ExitCode(); code > 1 {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	must(t, json.Unmarshal(out, &r))
	t.Logf("exit code %d\n%s", code, stderr.String())
	return r, code
}

// trialGone checks that nothing is left of a test.
func trialGone(t *testing.T) {
	t.Helper()
	for _, c := range []string{"c1", "c2"} {
		if left := kubectl(t, c, "get", "namespace", trialNamespace, "--ignore-not-found", "-o", "name"); left != "" {
			t.Errorf("%s: the test left its namespace", c)
		}
	}
}

// testConnectivity: where all is well, every call succeeds. A fault that is put in is named, and
// the test leaves nothing behind.
func testConnectivity(t *testing.T, o *ops) {
	t.Run("Well", func(t *testing.T) { o.connectivityWell(t) })
	t.Run("Refused", func(t *testing.T) { o.connectivityRefused(t) })
	t.Run("NoZone", func(t *testing.T) { o.connectivityNoZone(t) })
	t.Run("NoUDP", func(t *testing.T) { o.connectivityNoUDP(t) })
	t.Run("NoTunnel", func(t *testing.T) { o.connectivityNoTunnel(t) })
	t.Run("Interrupted", func(t *testing.T) { o.connectivityInterrupted(t) })
	// The tests that follow need the tunnel.
	testutil.Eventually(t, 3*time.Minute, func() error {
		if s, _ := o.tunnelOf(t); s != "carrying" {
			return fmt.Errorf("the tunnel is %q", s)
		}
		return nil
	})
}

func (o *ops) connectivityWell(t *testing.T) {
	junit := filepath.Join(t.TempDir(), "junit.xml")
	r, code := o.connectivity(t, "--perf", "--junit", junit)
	if code != 0 || len(r.Causes) > 0 || !slices.Equal(r.Clusters, []string{"c1", "c2"}) {
		t.Errorf("exit code %d, clusters %v, causes %+v", code, r.Clusters, r.Causes)
	}
	// 4 pods and 4 in the nodes' network call two clusters: 2 servers by TCP and UDP, 7 more calls
	// to the first server and the ClusterSetIP, 2 names of the Services, and one of each pod.
	if want := 8 * 2 * (4 + 7 + 2 + 2); len(r.Results) != want {
		t.Errorf("%d calls, want %d", len(r.Results), want)
	}
	ways := map[string]bool{}
	for _, x := range r.Results {
		ways[x.Way+" "+x.Protocol+" "+x.Kind] = true
		if x.State != "ok" {
			t.Errorf("%+v", x)
		}
	}
	for _, w := range []string{"ClusterSetIP UDP host", "headless name TCP pod", "pod name TCP host", "pod address UDP pod"} {
		if !ways[w] {
			t.Errorf("nothing was called by %s", w)
		}
	}
	for _, p := range r.Performance {
		// The MTU of the tunnels is 1,420, and that of the lab's own network larger.
		if len(p.Errors) > 0 || p.Ratio <= 0 || p.MegabitsPerSecond <= 0 || p.From != p.To && p.MTU != 1420 || p.MTU < 1420 {
			t.Errorf("%+v", p)
		}
	}
	if len(r.Performance) != 4 {
		t.Errorf("%d pairs were measured, want 4", len(r.Performance))
	}
	text, err := os.ReadFile(junit)
	must(t, err)
	if !strings.Contains(string(text), fmt.Sprintf(`tests="%d" failures="0"`, len(r.Results))) {
		t.Errorf("JUnit: %.300s", text)
	}
	trialGone(t)
}

// connectivityRefused: a cluster may forbid pods in the nodes' network, and a namespace that is not
// the test's stays.
func (o *ops) connectivityRefused(t *testing.T) {
	must(t, o.Apply(t.Context(), "c1", noHostPods))
	t.Cleanup(func() {
		run(t, o.Dir+"/bin/kubectl", "--kubeconfig", o.Kubeconfig(), "--context", "c1", "delete", "validatingadmissionpolicy/no-host-pods", "validatingadmissionpolicybinding/no-host-pods")
	})
	testutil.Eventually(t, 60*time.Second, func() error {
		r, code := o.connectivity(t)
		if code != 0 || len(r.Skipped) != 1 || r.Skipped[0].Cluster != "c1" || !strings.Contains(r.Skipped[0].Why, "no pods in the network of nodes here") {
			return fmt.Errorf("exit code %d, skipped %+v", code, r.Skipped)
		}
		return nil
	})
	out, err := o.cliAll(t, "connectivity", "test", "--context", "c1", "--test-namespace", "default")
	if err == nil || !strings.Contains(out, "strait did not make it") {
		t.Errorf("in a namespace of others: %v\n%s", err, out)
	}
	kubectl(t, "c1", "get", "namespace", "default")
}

func (o *ops) connectivityNoZone(t *testing.T) {
	out, err := o.cli(t, "c1", "dns", "setup", "--undo")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer func() {
		if out, err := o.cli(t, "c1", "dns", "setup"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	r, code := o.connectivity(t, "--no-host")
	if code != 1 || len(r.Causes) != 1 || !strings.Contains(r.Causes[0].Message, "CoreDNS of cluster c1 does not have the zone") || r.Causes[0].Try != "strait dns setup --context c1" {
		t.Errorf("exit code %d, causes %+v", code, r.Causes)
	}
	trialGone(t)
}

func (o *ops) connectivityNoUDP(t *testing.T) {
	for _, n := range []string{"c2n1", "c2n2"} {
		rule := []string{"FORWARD", "-p", "udp", "--dport", "8080", "-i", "strait0", "-j", "DROP"}
		o.enter(t, n, append([]string{"iptables", "-w", "-I"}, rule...), append([]string{"iptables", "-w", "-D"}, rule...))
	}
	r, code := o.connectivity(t, "--no-host")
	if code != 1 || len(r.Causes) == 0 {
		t.Errorf("exit code %d", code)
	}
	for _, c := range r.Causes {
		if !strings.Contains(c.Message, "TCP passes and UDP does not") {
			t.Errorf("%+v", c)
		}
		for _, i := range c.Results {
			if x := r.Results[i]; x.Protocol != "UDP" || x.To != "c2" || !strings.HasPrefix(x.From, "c1/") {
				t.Errorf("failed: %+v", x)
			}
		}
	}
}

// connectivityNoTunnel: two nodes whose tunnel is blocked are told, and only they.
func (o *ops) connectivityNoTunnel(t *testing.T) {
	_, underlay := o.tunnelOf(t)
	far, port, _ := strings.Cut(underlay, ":")
	for _, rule := range [][]string{{"INPUT", "-p", "udp", "-s", far, "--dport", port, "-j", "DROP"}, {"OUTPUT", "-p", "udp", "-d", far, "--dport", port, "-j", "DROP"}} {
		o.enter(t, "c1n1", append([]string{"iptables", "-w", "-I"}, rule...), append([]string{"iptables", "-w", "-D"}, rule...))
	}
	await := func(limit time.Duration, states ...string) {
		testutil.Eventually(t, limit, func() error {
			if s, _ := o.tunnelOf(t); !slices.Contains(states, s) {
				return fmt.Errorf("the tunnel is %q, want %v", s, states)
			}
			return nil
		})
	}
	await(time.Minute, "silent", "never", "one-way")
	r, code := o.connectivity(t)
	if code != 1 || len(r.Causes) == 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, c := range r.Causes {
		if !strings.Contains(c.Message, "the tunnel between c1/c1n1 and c2/c2n1 carries nothing") || !strings.HasPrefix(c.Code, "STR42") || !strings.Contains(c.Try, "open UDP port "+port) {
			t.Errorf("%+v", c)
		}
	}
	for _, x := range r.Results {
		if x.State != "ok" && x.From != "c1/c1n1" && x.From != "c2/c2n1" {
			t.Errorf("failed: %+v", x)
		}
	}
	trialGone(t)
}

// tunnelOf is what c1n1 knows of its tunnel to c2n1.
func (o *ops) tunnelOf(t *testing.T) (state, underlay string) {
	t.Helper()
	out, err := o.cli(t, "c1", "nodes", "--node", "c1n1", "-o", "json")
	must(t, err)
	var list struct {
		Items []struct {
			Name   string
			Tunnel struct{ State, Underlay string }
		}
	}
	must(t, json.Unmarshal([]byte(out), &list))
	for _, n := range list.Items {
		if n.Name == "c2n1" {
			return n.Tunnel.State, n.Tunnel.Underlay
		}
	}
	t.Fatalf("c1n1 does not know c2n1: %s", out)
	return "", ""
}

// connectivityInterrupted: Ctrl-C removes everything, and what a killed test left goes with the next one.
func (o *ops) connectivityInterrupted(t *testing.T) {
	killed := exec.CommandContext(t.Context(), o.strait.CLI, "connectivity", "test", "--kubeconfig", o.Kubeconfig(), "--context", "c1", "--context", "c2")
	must(t, killed.Start())
	for _, c := range []string{"c1", "c2"} {
		testutil.Eventually(t, 60*time.Second, func() error {
			if out, err := o.Kubectl(t.Context(), c, nil, "-n", trialNamespace, "get", "pods", "-o", "name"); err != nil || !strings.Contains(out, "pod-1") {
				return fmt.Errorf("%s: no pods yet: %w", c, err)
			}
			return nil
		})
	}
	must(t, killed.Process.Kill())
	_ = killed.Wait()
	kubectl(t, "c1", "get", "namespace", trialNamespace)
	interrupted := exec.CommandContext(t.Context(), o.strait.CLI, "connectivity", "test", "--kubeconfig", o.Kubeconfig(), "--context", "c1", "--context", "c2")
	var out strings.Builder
	// One writer for both, for which exec has one goroutine.
	both := &lineNotice{&out, "removed what an earlier test left", func() { _ = interrupted.Process.Signal(os.Interrupt) }}
	interrupted.Stdout, interrupted.Stderr = both, both
	err := interrupted.Run()
	if interrupted.ProcessState.ExitCode() != 130 {
		t.Errorf("%v\n%s", err, out.String())
	}
	trialGone(t)
}

// lineNotice calls a function when a text was written.
type lineNotice struct {
	*strings.Builder
	text  string
	found func()
}

func (l *lineNotice) Write(p []byte) (int, error) {
	n, err := l.Builder.Write(p)
	if strings.Contains(string(p), l.text) {
		l.found()
	}
	return n, err
}

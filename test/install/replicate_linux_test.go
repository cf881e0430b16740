package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
	"strait.io/strait/test/pages"
)

// stars are the Services of the application of the same name, with their endpoints. These clusters have no
// nodes, so no other program writes endpoints.
const stars = `{apiVersion: v1, kind: Service, metadata: {name: %[1]s, labels: {role: %[1]s}}, spec: {ports: [{name: http, port: %[2]d}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s, endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}}
addressType: IPv4
ports: [{name: http, port: %[2]d, protocol: TCP}]
endpoints: [%[3]s]
`

// replicator has two clusters without strait, and a file that lists them.
type replicator struct {
	user
	dir   string
	files int
}

func newReplicator(t *testing.T) *replicator {
	r := &replicator{user: newUser(t), dir: t.TempDir()}
	for _, c := range []string{"c1", "c2"} {
		own := r.kubectl(c, "config", "view", "--raw", "--minify", "--flatten")
		if err := os.WriteFile(filepath.Join(r.dir, "kubeconfig-"+c), []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// file writes another file, with some Services of each cluster, and returns its path.
func (r *replicator) file(kubeconfig2, one, two string) string {
	r.Helper()
	r.files++
	path := filepath.Join(r.dir, fmt.Sprintf("multicluster_svcs%d.yaml", r.files))
	text := fmt.Sprintf(`clusters:
- name: onPremCluster1
  kubeconfig: kubeconfig-c1
  services: [%s]
- name: eksCluster1
  kubeconfig: %s
  services: [%s]
`, one, kubeconfig2, two)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	return path
}

// replicate runs the command once, and returns what it printed.
func (r *replicator) replicate(file string, ok bool, words ...string) string {
	r.Helper()
	out, err := exec.CommandContext(r.Context(), r.cli, "replicate", "-f", file).CombinedOutput()
	if (err == nil) != ok {
		r.Fatalf("strait replicate: %v\n%s", err, out)
	}
	for _, w := range words {
		if !strings.Contains(string(out), w) {
			r.Errorf("strait replicate does not say %q:\n%s", w, out)
		}
	}
	return string(out)
}

// apply writes a Service of stars with endpoints at addresses.
func (r *replicator) apply(cluster, namespace, name string, port int, addrs ...string) {
	r.Helper()
	var endpoints []string
	for _, a := range addrs {
		endpoints = append(endpoints, "{addresses: ["+a+"], conditions: {ready: true}}")
	}
	_, _ = apiserver.Lab(r, 2).Kubectl(r.Context(), cluster, nil, "create", "namespace", namespace) // it may be there
	text := fmt.Sprintf(stars, name, port, strings.Join(endpoints, ", "))
	if _, err := apiserver.Lab(r, 2).Kubectl(r.Context(), cluster, []byte(text), "-n", namespace, "apply", "-f", "-"); err != nil {
		r.Fatal(err)
	}
}

// addrs are the addresses of a Service's endpoints in a cluster.
func (r *replicator) addrs(cluster, namespace, service string) string {
	r.Helper()
	return r.kubectl(cluster, "-n", namespace, "get", "endpointslices", "-l", "kubernetes.io/service-name="+service, "-o", "jsonpath={.items[*].endpoints[*].addresses[0]}")
}

// mirrors are all mirrors of a cluster.
func (r *replicator) mirrors(cluster string) string {
	r.Helper()
	return r.kubectl(cluster, "get", "services,endpointslices", "-A", "-l", "strait.io/policy-set", "-o", "name")
}

// TestScenarioB: the file of the hybrid cloud without NAT, as it stands, with clusters in which nothing of
// strait is installed.
func TestScenarioB(t *testing.T) {
	r := newReplicator(t)
	lab := apiserver.Lab(t, 2)
	for _, c := range []string{"c1", "c2"} {
		t.Cleanup(func() {
			for _, ns := range []string{"stars", "client", "management-ui"} {
				_, _ = lab.Kubectl(context.Background(), c, nil, "delete", "namespace", ns, "--ignore-not-found")
			}
		})
	}
	r.apply("c1", "stars", "frontend", 80, "10.1.0.1", "10.1.0.2")
	r.apply("c1", "stars", "backend", 6379) // no endpoints: it does not keep the others from being replicated
	r.apply("c2", "client", "client", 9000, "10.2.0.1")
	r.apply("c2", "management-ui", "management-ui", 9001, "10.2.0.2")
	r.page("docs/from/nat-less.md")
	if got := r.addrs("c2", "stars", "frontend"); got != "10.1.0.1 10.1.0.2" {
		r.Errorf("after the page, c2 has %s", got)
	}
	r.replicate(r.file("kubeconfig-c2", "", ""), true, "delete Service stars/frontend")
	if got := r.mirrors("c1") + r.mirrors("c2"); got != "" {
		r.Errorf("after going back, there are %s", got)
	}
	before := r.kubectl("c1", "-n", "stars", "get", "services,endpointslices", "-o", "yaml")
	file := r.file("kubeconfig-c2", "{namespace: stars}", "{namespace: management-ui}, {namespace: client}")

	out, err := exec.Command(r.cli, "replicate", "-f", file, "--dry-run").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "would create Service stars/frontend") || r.mirrors("c2") != "" {
		t.Fatalf("a dry run: %v\n%s", err, out)
	}
	r.replicate(file, true, "ekscluster1: create Service stars/frontend", "onpremcluster1: create Service client/client")
	for _, want := range []struct{ cluster, namespace, service, addrs string }{
		{"c2", "stars", "frontend", "10.1.0.1 10.1.0.2"}, {"c2", "stars", "backend", ""},
		{"c1", "client", "client", "10.2.0.1"}, {"c1", "management-ui", "management-ui", "10.2.0.2"},
	} {
		if got := r.addrs(want.cluster, want.namespace, want.service); got != want.addrs {
			t.Errorf("%s: %s/%s has %q, want %q", want.cluster, want.namespace, want.service, got, want.addrs)
		}
		spec := r.kubectl(want.cluster, "-n", want.namespace, "get", "service", want.service, "-o", "jsonpath={.spec.selector}/{.spec.type}/{.metadata.labels.role}")
		if spec != "/ClusterIP/"+want.service {
			t.Errorf("%s: the mirror %s is %s", want.cluster, want.service, spec)
		}
	}
	if after := r.kubectl("c1", "-n", "stars", "get", "services,endpointslices", "-o", "yaml"); after != before {
		t.Errorf("the source changed:\n%s\nwas\n%s", after, before)
	}
	r.replicate(file, true, "nothing to do")
	out, err = exec.Command(r.cli, "replicate", "-f", file, "--debug").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`msg="kubeconfig read" cluster=ekscluster1`, "verb=GET url=https://", "/api/v1/services",
		"msg=planned cluster=onpremcluster1", "mirrors=2 leftOut=0 writes=0",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("--debug does not print %q:\n%s", want, out)
		}
	}

	// A Service of the users' own stays theirs.
	r.apply("c1", "stars", "taken", 80, "10.1.0.3")
	r.apply("c2", "stars", "taken", 81, "10.2.0.3")
	r.replicate(file, true, "onpremcluster1/stars/taken is left out: TargetExists")
	if got := r.addrs("c2", "stars", "taken"); got != "10.2.0.3" {
		t.Errorf("c2's own Service has %s", got)
	}

	// A cluster that does not answer stops no other, and what came from it stays.
	r.apply("c1", "stars", "frontend", 80, "10.1.0.9")
	r.replicate(r.file("missing", "{namespace: stars}", "{namespace: client}"), false, "missing", "1 of 2 clusters could not be read")
	if got := r.addrs("c1", "client", "client") + " " + r.addrs("c1", "management-ui", "management-ui"); got != "10.2.0.1 10.2.0.2" {
		t.Errorf("while c2 does not answer, c1 has %s", got)
	}
	r.replicate(file, true, "update EndpointSlice stars/frontend")
	if got := r.addrs("c2", "stars", "frontend"); got != "10.1.0.9" {
		t.Errorf("c2 has %s", got)
	}

	// Two entries that are one cluster would mirror it to itself.
	r.replicate(r.file("kubeconfig-c1", "{namespace: stars}", "{namespace: client}"), false, "ekscluster1", "is the same cluster as onpremcluster1")

	// What is no longer listed goes.
	r.replicate(r.file("kubeconfig-c2", "{namespace: stars, nameMatches: ['front.*']}", ""), true, "delete Service client/client", "delete Service stars/backend")
	if got := r.mirrors("c1"); got != "" {
		t.Errorf("c1 still has %s", got)
	}
	if got := r.mirrors("c2"); strings.Count(got, "\n") != 1 {
		t.Errorf("c2 has %s, want the frontend and its slice", got)
	}
	r.watches()
	r.replicate(r.file("kubeconfig-c2", "", ""), true)
	if got := r.mirrors("c1") + r.mirrors("c2"); got != "" {
		t.Errorf("in the end there are %s", got)
	}
}

// page does what a page says, with the files that it shows. A file that does not begin with its name in a
// comment is multicluster_svcs.yaml.
func (r *replicator) page(path string) {
	r.Helper()
	all, err := pages.Load(os.DirFS("../.."))
	if err != nil {
		r.Fatal(err)
	}
	for _, p := range all {
		if p.Path != path {
			continue
		}
		for _, b := range pages.Blocks(p) {
			if b.Lang != "yaml" {
				continue
			}
			name := "multicluster_svcs.yaml"
			if first, _, _ := strings.Cut(b.Text, "\n"); strings.HasPrefix(first, "# ") {
				name = first[2:]
			}
			if err := os.WriteFile(filepath.Join(r.dir, name), []byte(b.Text), 0o600); err != nil {
				r.Fatal(err)
			}
		}
	}
	for name, to := range map[string]string{
		"kubeconfig-onPremCluster1.yaml": "kubeconfig-c1", "kubeconfig-eksCluster1.yaml": "kubeconfig-c2",
		"kubectl": filepath.Join(apiserver.Lab(r, 2).Programs, "kubectl"),
	} {
		if err := os.Symlink(to, filepath.Join(r.dir, name)); err != nil && !os.IsExist(err) {
			r.Fatal(err)
		}
	}
	for _, b := range pages.Of(all, pages.Replicate) {
		if b.Page != path {
			continue
		}
		out, err := r.shell(b.Script()).CombinedOutput()
		if err != nil {
			r.Fatalf("%s: %v\n%s", b.Place(), err, out)
		}
		r.Logf("%s says\n%s", b.Place(), out)
	}
}

// shell is a script with the replicator's files and programs.
func (r *replicator) shell(script string) *exec.Cmd {
	cmd := exec.CommandContext(r.Context(), "sh", "-e", "-c", script)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "PATH="+filepath.Dir(r.cli)+":"+r.dir+":"+os.Getenv("PATH"))
	return cmd
}

// watches: with --watch, the command follows changes until it is interrupted.
func (r *replicator) watches() {
	r.Helper()
	stop := r.watch("docs/from/nat-less.md") // the page's file is still there
	r.becomes("c1", "client", "client", "10.2.0.1")
	r.apply("c1", "stars", "frontend", 80, "10.1.0.4", "10.1.0.5")
	r.becomes("c2", "stars", "frontend", "10.1.0.4 10.1.0.5")
	r.kubectl("c2", "-n", "client", "delete", "service/client", "endpointslice/client-1")
	r.becomes("c1", "client", "client", "")
	stop()
}

// becomes waits until the endpoints of a Service have some addresses.
func (r *replicator) becomes(cluster, namespace, service, want string) {
	r.Helper()
	testutil.Eventually(r, 20*time.Second, func() error {
		if got := r.addrs(cluster, namespace, service); got != want {
			return fmt.Errorf("%s: %s/%s has %q, want %q", cluster, namespace, service, got, want)
		}
		return nil
	})
}

// watch runs the command of a page that follows changes. The function that it returns interrupts it, and
// waits for its end.
func (r *replicator) watch(page string) (stop func()) {
	r.Helper()
	all, err := pages.Load(os.DirFS("../.."))
	if err != nil {
		r.Fatal(err)
	}
	blocks := slices.DeleteFunc(pages.Of(all, pages.Watch), func(b pages.Block) bool { return b.Page != page })
	if len(blocks) != 1 {
		r.Fatalf("%s has %d blocks that follow changes, want one", page, len(blocks))
	}
	cmd := r.shell("exec " + blocks[0].Script()) // in place of the shell, so that the interrupt is the command's
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			select {
			case err := <-ended:
				if code := cmd.ProcessState.ExitCode(); code != 130 && code != 0 {
					r.Errorf("interrupted: %v\n%s", err, log.String())
				}
			case <-time.After(20 * time.Second):
				_ = cmd.Process.Kill()
				r.Errorf("an interrupt does not end it:\n%s", log.String())
			}
		})
	}
	r.Cleanup(stop)
	return stop
}

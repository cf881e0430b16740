package kube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/install/image/oci"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/apiserver"
)

// pods is a server and a shell on each node of a cluster, and a Service before the servers.
const pods = `
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: serve, image: localhost/agnhost:1, args: [netexec, --http-port=8080]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s-shell}
spec:
  selector: {matchLabels: {app: %[1]s-shell}}
  template:
    metadata: {labels: {app: %[1]s-shell}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: shell, image: localhost/shell:1, command: [sleep, infinity]}
`

// startPods makes the pods of a name in a cluster, and removes them when the test ends.
func startPods(t *testing.T, l *kubelab.Lab, cluster, name string) {
	t.Helper()
	must(t, l.Apply(t.Context(), cluster, fmt.Sprintf(pods, name)))
	t.Cleanup(func() {
		_, err := l.Kubectl(context.Background(), cluster, nil, "delete", "--wait=false", "daemonset/"+name, "daemonset/"+name+"-shell", "service/"+name)
		if err != nil {
			t.Error(err)
		}
	})
	for _, ds := range []string{name, name + "-shell"} {
		kubectl(t, cluster, "rollout", "status", "daemonset/"+ds, "--timeout=60s")
	}
}

// podOn is a pod of a DaemonSet on a node: its name and its address.
func podOn(t *testing.T, cluster, app, node string) (name, ip string) {
	t.Helper()
	out := kubectl(t, cluster, "get", "pods", "-l", "app="+app, "--field-selector=spec.nodeName="+node+",status.phase=Running",
		"-o", "jsonpath={.items[0].metadata.name} {.items[0].status.podIP}")
	name, ip, _ = strings.Cut(out, " ")
	if ip == "" {
		t.Fatalf("no pod of %s runs on %s: %q", app, node, out)
	}
	return name, ip
}

// get asks an HTTP server from a pod.
func get(ctx context.Context, l *kubelab.Lab, cluster, pod, url string) (string, error) {
	return inPod(ctx, l, cluster, pod, "curl", "-sS", "--fail", "--max-time", "2", url)
}

func TestNodes(t *testing.T) {
	l := theLab(t)
	for _, c := range l.Topology.Clusters {
		// As a person does, in the root network namespace.
		out, err := exec.Command(l.Dir+"/bin/kubectl", "--kubeconfig", l.Kubeconfig(), "--context", c.Name, "get", "nodes", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.status.addresses[?(@.type=="InternalIP")].address} {.spec.podCIDRs} `+
				`{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`).Output()
		must(t, err)
		var want []string
		for _, n := range c.Nodes {
			cidrs := ""
			if c.PodCIDRs {
				cidrs = fmt.Sprintf("[%q]", n.Pods)
			}
			want = append(want, fmt.Sprintf("%s %s %s True", n.Name, n.Addr, cidrs))
		}
		if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) {
			t.Errorf("nodes of %s: %q, want %q", c.Name, got, want)
		}
	}
}

func TestPods(t *testing.T) {
	l := theLab(t)
	for _, c := range l.Topology.Clusters {
		startPods(t, l, c.Name, "web")
	}
	for i, c := range l.Topology.Clusters {
		first, last := c.Nodes[0], c.Nodes[len(c.Nodes)-1]
		shell, _ := podOn(t, c.Name, "web-shell", first.Name)
		near, nearIP := podOn(t, c.Name, "web", first.Name)
		far, farIP := podOn(t, c.Name, "web", last.Name)
		for name, ip := range map[string]string{near: nearIP, far: farIP} {
			if got, err := get(t.Context(), l, c.Name, shell, "http://"+ip+":8080/hostname"); got != name {
				t.Errorf("%s: a pod at %s of its own cluster answers %q (%v), want %q", c.Name, ip, got, err, name)
			}
		}
		// By CoreDNS and kube-proxy, and both of the servers, the one beside the client too.
		seen := map[string]bool{}
		testutil.Eventually(t, 20*time.Second, func() error {
			got, err := get(t.Context(), l, c.Name, shell, "http://web.default.svc.cluster.local/hostname")
			seen[got] = true
			if err == nil && (!seen[near] || !seen[far]) {
				err = fmt.Errorf("%s: only %v have answered, want %s and %s", c.Name, seen, near, far)
			}
			return err
		})
		other := l.Topology.Clusters[1-i]
		if _, err := l.OnNode(t.Context(), first.Name, "nc", "-z", "-w", "2", other.Nodes[0].Addr.String(), "10250"); err != nil {
			t.Errorf("%s cannot reach %s: %v", first.Name, other.Nodes[0].Name, err)
		}
	}
}

func TestAPIServerAway(t *testing.T) {
	l := theLab(t)
	startPods(t, l, "c1", "stay")
	_, ip := podOn(t, "c1", "stay", "c1n1")
	must(t, l.StopAPIServer(t.Context(), "c1"))
	if _, err := l.Kubectl(t.Context(), "c1", nil, "get", "--raw", "/readyz", "--request-timeout=5s"); err == nil {
		t.Error("the API server of c1 answers though it was stopped")
	}
	if _, err := l.Kubectl(t.Context(), "c2", nil, "get", "--raw", "/readyz", "--request-timeout=5s"); err != nil {
		t.Errorf("the API server of c2 should know nothing of it: %v", err)
	}
	if got, err := l.OnNode(t.Context(), "c1n2", "curl", "-sS", "--max-time", "2", "http://"+ip+":8080/hostname"); err != nil || !strings.HasPrefix(got, "stay-") {
		t.Errorf("the pod answers %q (%v) without its API server", got, err)
	}
	start := time.Now()
	must(t, l.StartAPIServer(t.Context(), "c1"))
	t.Logf("the API server was back after %.1f s", time.Since(start).Seconds())
}

func TestNodeDies(t *testing.T) {
	l := theLab(t)
	must(t, l.Import(t.Context(), extraImage(t)))
	must(t, l.NodeDown(t.Context(), "c2n2"))
	if _, err := l.OnNode(t.Context(), "c2n1", "nc", "-z", "-w", "2", "172.31.2.2", "10250"); err == nil {
		t.Error("c2n2 answers though it is dead")
	}
	start := time.Now()
	must(t, l.NodeUp(t.Context(), "c2n2"))
	t.Logf("the node was back after %.1f s", time.Since(start).Seconds())
	for _, n := range []string{"c1n1", "c1n2", "c2n1", "c2n2"} {
		out, err := l.OnNode(t.Context(), n, l.Programs+"/ctr", "-n", "k8s.io", "images", "ls", "-q")
		must(t, err)
		if !slices.Contains(strings.Fields(out), "localhost/extra:1") {
			t.Errorf("%s lacks the imported image; it has %s", n, out)
		}
	}
	startPods(t, l, "c2", "again")
	shell, _ := podOn(t, "c2", "again-shell", "c2n1")
	name, ip := podOn(t, "c2", "again", "c2n2")
	if got, err := get(t.Context(), l, "c2", shell, "http://"+ip+":8080/hostname"); got != name {
		t.Errorf("the pod on the new node answers %q (%v), want %q", got, err, name)
	}
}

// extraImage makes an image file.
func extraImage(t *testing.T) string {
	t.Helper()
	root, file := t.TempDir(), filepath.Join(t.TempDir(), "extra.tar")
	must(t, os.WriteFile(filepath.Join(root, "hello"), []byte("hello"), 0o644))
	_, err := oci.Write(file, oci.Image{Names: []string{"localhost/extra:1"}, Root: root, Arch: runtime.GOARCH})
	must(t, err)
	return file
}

// TestObjects is the tier without nodes.
func TestObjects(t *testing.T) {
	o := apiserver.Options(t)
	o.Dir += "-objects"
	o.Clusters = 2
	before, err := look(nil)
	must(t, err)
	start := time.Now()
	l, err := apiserver.Up(o)
	apiserver.Must(t, err)
	t.Logf("API servers were up in %.1f s", time.Since(start).Seconds())
	t.Cleanup(func() {
		must(t, l.Down(context.Background()))
		after, err := look(l)
		must(t, err)
		must(t, after.compare(before))
	})
	for _, c := range []string{"c1", "c2"} {
		must(t, l.Apply(t.Context(), c, "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: in-"+c+"}\n"))
		out, err := l.Kubectl(t.Context(), c, nil, "get", "serviceexports", "-o", "name")
		if want := "serviceexport.multicluster.x-k8s.io/in-" + c + "\n"; err != nil || out != want {
			t.Errorf("exports of %s: %q (%v), want %q", c, out, err, want)
		}
		testutil.Eventually(t, 10*time.Second, func() error {
			_, err := l.Kubectl(t.Context(), c, nil, "get", "serviceaccount", "default")
			return err
		})
	}
}

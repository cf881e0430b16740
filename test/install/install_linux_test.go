// Package install runs strait's CLI as a user does, against real API servers of clusters that have no nodes: what
// install, upgrade, connect, dns setup and uninstall write, refuse and take away.
//
// Input is the source, of which it builds the CLI. What needs nodes is tested in test/kube.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "strait-t-install-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "strait")
	// As make build does, so that what it compiled is not compiled again.
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", file, "strait.io/strait/cmd/strait")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build strait: %w: %s", err, out)
	}
	text, err := os.ReadFile(file)
	return string(text), err
})

// user has a CLI and a lab of two clusters.
type user struct {
	*testing.T
	cli, kubeconfig string
}

func newUser(t *testing.T) user {
	t.Helper()
	u := user{t, filepath.Join(t.TempDir(), "strait"), apiserver.Lab(t, 2).Kubeconfig()}
	program, err := build()
	if err == nil {
		err = os.WriteFile(u.cli, []byte(program), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// strait runs the CLI and returns what it printed and its exit code.
func (u user) strait(args ...string) (string, int) {
	u.Helper()
	cmd := exec.CommandContext(u.Context(), u.cli, append(args, "--kubeconfig", u.kubeconfig)...)
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		u.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// does runs what must succeed and say the words; fails what must not.
func (u user) does(args []string, words ...string) string {
	u.Helper()
	return u.expect(true, args, words)
}

func (u user) fails(args []string, words ...string) { u.Helper(); u.expect(false, args, words) }

func (u user) expect(ok bool, args, words []string) string {
	u.Helper()
	out, code := u.strait(args...)
	if (code == 0) != ok {
		u.Fatalf("strait %q: exit code %d: %s", args, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			u.Errorf("strait %q does not say %q: %s", args, w, out)
		}
	}
	return out
}

// kubectl returns what is printed.
func (u user) kubectl(cluster string, args ...string) string {
	u.Helper()
	out, err := apiserver.Lab(u, 2).Kubectl(u.Context(), cluster, nil, args...)
	if err != nil {
		u.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// uninstallAtEnd leaves the cluster to the next test as it was.
func (u user) uninstallAtEnd(cluster string) {
	u.Cleanup(func() {
		out, err := exec.Command(u.cli, "uninstall", "--context", cluster, "--kubeconfig", u.kubeconfig, "--timeout", "60s").CombinedOutput()
		if err != nil {
			u.Errorf("uninstall: %v: %s", err, out)
		}
	})
}

// traces are all objects that strait's install makes, in a cluster.
func (u user) traces(cluster string) string {
	u.Helper()
	kinds := "namespaces,clusterroles,clusterrolebindings,crds,validatingadmissionpolicies,validatingadmissionpolicybindings," +
		"roles,rolebindings,daemonsets,deployments,services,configmaps,secrets,serviceaccounts,leases"
	return u.kubectl(cluster, "get", kinds, "-A", "-l", "app.kubernetes.io/part-of in (strait,strait-dns)", "-o", "name")
}

// versions tells an object that was written from one that was not.
func (u user) versions(cluster string) string {
	u.Helper()
	return u.kubectl(cluster, "get", "clusterroles,clusterrolebindings,crds,validatingadmissionpolicies,roles,daemonsets,deployments,services,configmaps,secrets,serviceaccounts", "-A",
		"-l", "app.kubernetes.io/part-of=strait", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
}

var installC1 = []string{"install", "--context", "c1", "--cluster", "us-east"}

func with(args []string, more ...string) []string { return append(args[:len(args):len(args)], more...) }

func TestLife(t *testing.T) {
	u := newUser(t)
	before := u.traces("c1")
	u.fails([]string{"upgrade", "--context", "c1"}, "strait is not installed", "strait install")
	u.fails([]string{"install", "--context", "c1"}, "--cluster NAME")
	u.does(with(installC1, "--dry-run"), "created", "DaemonSet", "nothing was changed")
	if got := u.traces("c1"); got != before {
		t.Fatalf("a dry run made %s", got)
	}
	u.fails(with(installC1, "--set", "mesh.implementation=kernal"), `mesh.implementation: "kernal" is invalid: use kernel or userspace`)
	if got := u.traces("c1"); got != before {
		t.Fatalf("an install with a value that does not exist made %s", got)
	}

	start := time.Now()
	out := u.does(installC1, "created", "DaemonSet strait-system/strait", "runs on 0 nodes")
	t.Logf("installed in %.1f s", time.Since(start).Seconds())
	if strings.Contains(out, "changed ") {
		t.Errorf("the first install changed something: %s", out)
	}
	settled := u.versions("c1")
	again := u.does(installC1)
	if now := u.versions("c1"); now != settled || strings.Contains(again, "created ") || strings.Contains(again, "changed ") {
		t.Errorf("install again changed something:\n%s\nwas\n%s\n%s", now, settled, again)
	}

	// What it has outside of namespaces is there once.
	for _, args := range [][]string{installC1, with(installC1, "--dry-run"), {"upgrade", "--context", "c1"}, {"uninstall", "--context", "c1"}} {
		u.fails(with(args, "-n", "other"), "strait is in the namespace strait-system", "use -n strait-system", "strait uninstall --context c1 -n strait-system")
	}
	if now := u.versions("c1"); now != settled {
		t.Errorf("what was refused changed something:\n%s\nwas\n%s", now, settled)
	}

	// The tunnel is there while a userspace mesh is wanted, and no longer.
	u.does([]string{"upgrade", "--context", "c1", "--set", "mesh.implementation=userspace"}, "DaemonSet strait-system/strait-tunnel")
	u.does([]string{"upgrade", "--context", "c1", "--set", "mesh.mode=off"}, "deleted", "strait-tunnel")
	testutil.Eventually(t, 10*time.Second, func() error {
		if got := u.kubectl("c1", "-n", "strait-system", "get", "daemonsets", "-o", "name"); got != "daemonset.apps/strait" {
			return fmt.Errorf("DaemonSets %s", got)
		}
		return nil
	})
	if got := u.kubectl("c1", "-n", "strait-system", "get", "configmap", "strait", "-o", "jsonpath={.data}"); !strings.Contains(got, "us-east") {
		t.Errorf("the cluster's id is lost: %s", got)
	}

	u.does([]string{"uninstall", "--context", "c1", "--timeout", "60s"}, "strait is removed")
	if got := u.traces("c1"); got != before {
		t.Errorf("uninstall left %s", got)
	}
	u.does([]string{"uninstall", "--context", "c1"}, "strait was not installed")
	u.does(installC1, "created")
	u.does([]string{"uninstall", "--context", "c1", "--timeout", "60s"}, "strait is removed")
}

// TestPinsMove: an upgrade takes over pins that the version before kept in the Secret, once, and the pods of
// that version still find them there.
func TestPinsMove(t *testing.T) {
	u := newUser(t)
	u.uninstallAtEnd("c1")
	u.does(installC1)
	pins := func() string {
		return u.kubectl("c1", "-n", "strait-system", "get", "configmap", "strait-pins", "-o", "jsonpath={.data.pins\\.yaml}", "--ignore-not-found")
	}
	if got := pins(); got != "" {
		t.Fatalf("without pins there are %q", got)
	}
	u.kubectl("c1", "-n", "strait-system", "create", "secret", "generic", "strait-authority", "--from-literal=root.key=root", "--from-literal=pins.yaml=those before")
	u.does([]string{"upgrade", "--context", "c1"}, "created", "ConfigMap strait-system/strait-pins")
	if got := pins(); got != "those before" {
		t.Errorf("the upgrade took over %q", got)
	}
	if got := u.kubectl("c1", "-n", "strait-system", "get", "secret", "strait-authority", "-o", "jsonpath={.data.pins\\.yaml}"); got == "" {
		t.Error("the pods of the version before do not find their pins")
	}
	u.kubectl("c1", "-n", "strait-system", "patch", "configmap", "strait-pins", "--type=merge", "-p", `{"data": {"pins.yaml": "those now"}}`)
	u.does([]string{"upgrade", "--context", "c1"})
	if got := pins(); got != "those now" {
		t.Errorf("the next upgrade left %q", got)
	}
}

// TestUninstallMultiCluster: what strait made for objects of networking.gke.io goes, and what others made stays.
func TestUninstallMultiCluster(t *testing.T) {
	u := newUser(t)
	u.does(installC1)
	for name, labels := range map[string]string{
		"mci": "app.kubernetes.io/managed-by: strait, strait.io/multi-cluster-service: a, strait.io/multi-cluster-ingress: a", "mine": "strait.io/multi-cluster-service: a, strait.io/multi-cluster-ingress: a",
	} {
		for _, text := range []string{
			`{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: default, labels: {%s}}, spec: {clusterIP: None, selector: {a: b}, ports: [{port: 80}]}}`,
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: %s, namespace: default, labels: {%s}}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`,
		} {
			if err := apiserver.Lab(t, 2).Apply(t.Context(), "c1", fmt.Sprintf(text, name, labels)); err != nil {
				t.Fatal(err)
			}
		}
	}
	u.does([]string{"uninstall", "--context", "c1", "--timeout", "60s"}, "strait is removed")
	if got := u.kubectl("c1", "-n", "default", "delete", "services,ingresses", "-l", "strait.io/multi-cluster-service", "-o", "name"); got != "service/mine\ningress.networking.k8s.io/mine" {
		t.Errorf("uninstall left %q", got)
	}
}

// TestUninstallReleasesStatuses: a policy and an export stay, without what a leader wrote into them. A condition
// of another writer stays.
func TestUninstallReleasesStatuses(t *testing.T) {
	u := newUser(t)
	u.does(installC1)
	const object = "apiVersion: strait.io/v1alpha1\nkind: ServicePolicy\nmetadata: {name: left}\n"
	lab := apiserver.Lab(t, 2)
	if err := lab.Apply(t.Context(), "c1", object+"spec: {from: [c1], to: [c2], select: [{namespaces: [shop]}]}"); err != nil {
		t.Fatal(err)
	}
	status := object + "status: {cluster: c1, selected: 1, shared: 1, mirrored: 0, imported: 0, joined: 0, skipped: [{service: c1/shop/a, reason: b}], conditions: " +
		"[{type: Ready, status: 'True', reason: InForce, message: a, lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
	if _, err := lab.Kubectl(t.Context(), "c1", []byte(status), "apply", "--server-side", "--subresource=status", "--field-manager=strait", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	const export = "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: left, namespace: default}\n"
	if err := lab.Apply(t.Context(), "c1", export); err != nil {
		t.Fatal(err)
	}
	for manager, condition := range map[string]string{"strait": "strait.io/LocalBackends", "other": "Theirs"} {
		status := export + "status: {conditions: [{type: " + condition + ", status: 'False', reason: a, message: b, lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
		if _, err := lab.Kubectl(t.Context(), "c1", []byte(status), "apply", "--server-side", "--subresource=status", "--field-manager="+manager, "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	u.does([]string{"uninstall", "--context", "c1", "--timeout", "60s"}, "strait is removed", "kept")
	if got := u.kubectl("c1", "-n", "default", "get", "serviceexports", "left", "-o", "jsonpath={.status.conditions[*].type}"); got != "Theirs" {
		t.Errorf("the export has the conditions %q", got)
	}
	u.kubectl("c1", "-n", "default", "delete", "serviceexports", "left")
	if got := u.kubectl("c1", "get", "servicepolicies", "left", "-o", "jsonpath={.spec.to} {.status}"); got != `["c2"]` && got != `["c2"] {}` {
		t.Errorf("the policy has %s", got)
	}
	u.kubectl("c1", "delete", "servicepolicies", "left")
	u.does([]string{"uninstall", "--context", "c1", "--timeout", "60s"})
}

// TestUpgradeCRDs: CRDs of another program stay as they are, unless the user wants v1beta1. Nothing that
// exists is lost, and the CRDs stay that program's.
func TestUpgradeCRDs(t *testing.T) {
	u := newUser(t)
	lab := apiserver.Lab(t, 2)
	apiserver.OldCRDs(t, lab, "c1")
	if err := lab.Apply(t.Context(), "c1", `{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, metadata: {name: early, namespace: default}}`); err != nil {
		t.Fatal(err)
	}
	const serves = "jsonpath={.spec.versions[?(@.served==true)].name}"
	versions := func() string {
		return u.kubectl("c1", "get", "crd", "serviceimports.multicluster.x-k8s.io", "-o", serves)
	}
	u.does(installC1, "kept", "it serves only v1alpha1, which strait reads and writes; --upgrade-crds adds v1beta1")
	u.uninstallAtEnd("c1")
	u.does([]string{"upgrade", "--context", "c1", "--upgrade-crds", "--dry-run"}, "upgraded: adds v1beta1 to v1alpha1")
	if got := versions(); got != "v1alpha1" {
		t.Errorf("without the flag, and with --dry-run, it serves %s", got)
	}
	u.does([]string{"upgrade", "--context", "c1", "--upgrade-crds"}, "upgraded: adds v1beta1 to v1alpha1")
	if got := versions(); got != "v1alpha1 v1beta1" {
		t.Errorf("upgraded, it serves %s", got)
	}
	testutil.Eventually(t, 30*time.Second, func() error {
		_, err := lab.Kubectl(t.Context(), "c1", nil, "-n", "default", "get", "serviceexports.v1beta1.multicluster.x-k8s.io", "early")
		return err
	})
	if got := u.kubectl("c1", "get", "crd", "-l", "app.kubernetes.io/part-of=strait", "-o", "name"); strings.Contains(got, "serviceimports") {
		t.Errorf("strait's by now: %s", got)
	}
	u.does([]string{"upgrade", "--context", "c1"}, "strait did not install it")
}

// deadNode gets pods and runs none: no kubelet is behind it.
const deadNode = `
apiVersion: v1
kind: Node
metadata: {name: dead, labels: {kubernetes.io/os: linux}}
status:
  allocatable: {cpu: "4", memory: 4Gi, pods: "10"}
  capacity: {cpu: "4", memory: 4Gi, pods: "10"}
`

// TestUninstallForce: a node that does not answer stops uninstall, and with --force is left as it is.
func TestUninstallForce(t *testing.T) {
	u := newUser(t)
	before := u.traces("c1")
	lab := apiserver.Lab(t, 2)
	if err := lab.Apply(t.Context(), "c1", deadNode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := lab.Kubectl(context.Background(), "c1", nil, "delete", "node", "dead"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	u.does(with(installC1, "--wait=false"), "created")
	testutil.Eventually(t, 30*time.Second, func() error {
		pod := u.kubectl("c1", "-n", "strait-system", "get", "pods", "-l", "app.kubernetes.io/component=daemon", "-o", "jsonpath={.items[*].metadata.name}")
		if pod == "" {
			return errors.New("the daemon has no pod")
		}
		// The lab has no scheduler. A pod that no node has goes at once; one whose node is silent stays.
		binding := fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"kind":"Node","name":"dead"}}`, pod)
		_, err := lab.Kubectl(t.Context(), "c1", []byte(binding), "create", "--raw", "/api/v1/namespaces/strait-system/pods/"+pod+"/binding", "-f", "-")
		return err
	})
	u.fails([]string{"uninstall", "--context", "c1", "--timeout", "3s"}, "not done within 3s", "--force")
	u.does([]string{"uninstall", "--context", "c1", "--timeout", "20s", "--force"}, "not all nodes are clean", "strait is removed")
	if got := u.traces("c1"); got != before {
		t.Errorf("uninstall left %s", got)
	}
}

// TestConnectRefuses: nothing is written to clusters that cannot be joined.
func TestConnectRefuses(t *testing.T) {
	u := newUser(t)
	connect := []string{"clusterset", "connect", "--context", "c1", "--context", "c2", "--timeout", "3s"}
	u.fails(connect, "strait is not installed", "strait install --context c1")
	for _, c := range []string{"c1", "c2"} {
		u.does([]string{"install", "--context", c, "--cluster", "same"})
		u.uninstallAtEnd(c)
	}
	secrets := func() string {
		return u.kubectl("c1", "-n", "strait-system", "get", "secret", "strait-clusterset", "-o", "jsonpath={.data}") +
			u.kubectl("c2", "-n", "strait-system", "get", "secret", "strait-clusterset", "-o", "jsonpath={.data}")
	}
	before := secrets()
	u.fails(connect, "same", "c1", "c2")
	if now := secrets(); now != before {
		t.Error("a refused connect wrote a Secret")
	}
	rename := []string{"--context", "c2", "--cluster", "other"}
	u.fails(append([]string{"upgrade"}, rename...), "a second cluster to the others", "strait uninstall --context c2")
	u.does([]string{"uninstall", "--context", "c2"})
	u.does(append([]string{"install"}, rename...))
	before = secrets()
	for c, cidr := range map[string]string{"c1": "10.99.0.0/16", "c2": "10.98.0.0/15"} {
		node := fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: twin}\nspec: {podCIDR: %[1]s, podCIDRs: [%[1]s]}\n", cidr)
		if err := apiserver.Lab(t, 2).Apply(t.Context(), c, node); err != nil {
			t.Fatal(err)
		}
	}
	u.fails(connect, "overlap", "10.99.")
	if now := secrets(); now != before {
		t.Error("a refused connect wrote a Secret")
	}
	for _, c := range []string{"c1", "c2"} {
		u.kubectl(c, "delete", "node", "twin")
	}
	u.fails(connect, "cannot pin", "pass --pods same=CIDR", "pass --pods other=CIDR")
	if now := secrets(); now != before {
		t.Error("a refused connect wrote a Secret")
	}
	u.fails(with(connect, "--pin=false"), "the clusters are not connected")
	if now := secrets(); now == before {
		t.Error("connect wrote no Secret")
	}
	disconnect := []string{"clusterset", "disconnect", "other"}
	u.fails(with(disconnect, "--context", "c1", "--context", "c2"), "context c2 is cluster other itself")
	u.does(with(disconnect, "--context", "c1"), "disconnected: other")
	u.does([]string{"clusterset", "status", "--context", "c1"}, "joined: same;")
	u.fails(with(disconnect, "--context", "c1"), "no context's cluster is joined to a cluster other")
}

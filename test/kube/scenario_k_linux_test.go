package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/test/pages"
)

// TestScenarioK is kubernetai's use: a client of c2 calls a local name, and never another one. Local
// pods answer; those of c1 do if there are none, or no Service at all. The commands are those of
// docs/from/kubernetai.md, and CoreDNS is the real one.
func TestScenarioK(t *testing.T) {
	o := newOps(t)
	c1, c2 := clusterset(t)
	dir, blocks := fallThroughPage(t, c1.ns)
	path := o.commands(t)
	plain := corefileOf(t, "c2")
	defer func() { // the lab has clusterset.local
		for _, c := range []string{"c1", "c2"} {
			if out, err := o.cli(t, c, "dns", "setup"); err != nil {
				t.Errorf("dns setup in %s: %v\n%s", c, err, out)
			}
			kubectl(t, c, "delete", "servicepolicy", "--ignore-not-found", c1.ns+"-missing", c1.ns+"-empty")
		}
		must(t, equal("Corefile of c2", corefileOf(t, "c2"), plain))
	}()
	c1.serve(service(withTargets))
	c1.pods(1)
	name := "hello." + c2.ns
	c2.resolves(name+".svc.cluster.local", "A")
	must(t, o.scriptIn(t, dir, path, blocks[0].Script()))

	began := time.Now()
	say := func(what string) {
		t.Logf("%s: answered so %.1f s after the change", what, time.Since(began).Seconds())
		began = time.Now()
	}
	c2.answered(name+":42", "c1")
	say("no local Service")
	c2.resolves(name+".svc.cluster.local", "A", c2.imported("hello", from("c1")).Spec.IPs...)
	c2.resolves("_tcp._tcp."+name+".svc.cluster.local", "SRV", "42 "+name+".svc.cluster.local.")
	c2.resolves("other."+c2.ns+".svc.cluster.local", "A")

	c2.pods(1)
	began = time.Now()
	local := c2.serve(service(withTargets, annotated(map[string]string{"service.strait.io/affinity": "local"})))
	c2.answered(name+":42", "c2")
	say("a local Service with a pod")
	c2.resolves(name+".svc.cluster.local", "A", local.Spec.ClusterIP)
	c2.pods(0)
	c2.answered(local.Spec.ClusterIP+":42", "c1")
	c2.answered(name+":42", "c1")
	say("a local Service without pods")
	c2.resolves(name+".svc.cluster.local", "A", local.Spec.ClusterIP)
	c2.pods(1)
	c2.answered(name+":42", "c2")
	say("its pod is back")

	must(t, c2.core.CoreV1().Services(c2.ns).Delete(t.Context(), "hello", metav1.DeleteOptions{}))
	began = time.Now()
	c2.answered(name+":42", "c1")
	say("the local Service is gone")
	local = c2.serve(service(withTargets))
	c2.answered(name+":42", "c2")
	say("it is back")
	c2.resolves(name+".svc.cluster.local", "A", local.Spec.ClusterIP)
	must(t, c2.core.CoreV1().Services(c2.ns).Delete(t.Context(), "hello", metav1.DeleteOptions{}))
	c2.answered(name+":42", "c1")

	must(t, o.scriptIn(t, dir, path, blocks[1].Script()))
	c2.resolves(name+".svc.cluster.local", "A")
	if text := corefileOf(t, "c2"); strings.Contains(text, "clusterset") || strings.Contains(text, "5300") {
		t.Errorf("the Corefile that dns setup --undo leaves:\n%s", text)
	}
}

// fallThroughPage returns a folder with the file of docs/from/kubernetai.md, for a namespace other
// than the page's, and the commands that use it: those that share, and those that take it back.
func fallThroughPage(t *testing.T, namespace string) (dir string, blocks []pages.Block) {
	t.Helper()
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	blocks = pages.Of(all, pages.Kubernetai)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks to execute, want 2: share, take back", len(blocks))
	}
	dir = t.TempDir()
	for _, p := range all {
		for _, b := range pages.Blocks(p) {
			if p.Path == blocks[0].Page && b.Lang == "yaml" {
				text := strings.ReplaceAll(b.Text, "shop", namespace)
				must(t, os.WriteFile(filepath.Join(dir, "fall-through.yaml"), []byte(text), 0o644))
				return dir, blocks
			}
		}
	}
	t.Fatalf("%s has no YAML", blocks[0].Page)
	return "", nil
}

// corefileOf returns CoreDNS's configuration in a cluster.
func corefileOf(t *testing.T, cluster string) string {
	t.Helper()
	return kubectl(t, cluster, "-n", "kube-system", "get", "configmap", "coredns", "-o", "jsonpath={.data.Corefile}")
}

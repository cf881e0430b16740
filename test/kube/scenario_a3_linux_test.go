package kube

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/pages"
)

// important is a Service of c1, and others that nothing mirrors, in front of the pods of ops-c1.
const important = `
apiVersion: v1
kind: Service
metadata: {name: important-service}
spec: {selector: {app: ops-c1}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: important-service-headless}
spec: {clusterIP: None, selector: {app: ops-c1}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: too-early}
spec: {from: [c1], to: [c2], as: mirror, name: "{name}-early", endpoints: clusterIP, select: [{namespaces: [default], names: ["important-service.*"]}]}
`

// TestScenarioA3 is Kilo's mirror: a Service of c2 leads to the ClusterIP of one of c1, which a node of c1
// translates on arrival. The commands are those of docs/from/kilo.md. The pods are on both nodes of c1, and the
// clients on both of c2.
func TestScenarioA3(t *testing.T) {
	o := newOps(t)
	_, c2 := apart(t)
	o.startServers(t, "c1")
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	path, blocks := o.commands(t), pages.Of(all, pages.Kilo)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks to execute, want 3: the entry, a mirror by hand, a policy", len(blocks))
	}
	undo := func() {
		must(t, o.script(t, path, "kubectl --context c1 annotate node c1n1 c1n2 strait.io/cluster-ips-\n"+
			"strait clusterset connect --context c1 --context c2 --yes --pods c1=10.11.0.0/16"))
	}
	defer undo()
	t.Cleanup(func() {
		for _, c := range []string{"c1", "c2"} {
			if _, err := o.Kubectl(context.Background(), c, nil, "delete", "--ignore-not-found", "service/important-service", "service/important-service-headless",
				"endpoints/important-service", "servicepolicy/important", "servicepolicy/too-early"); err != nil {
				t.Error(err)
			}
		}
	})
	must(t, o.Apply(t.Context(), "c1", important))
	_, policies, _ := strings.Cut(important, "---\napiVersion: strait.io")
	must(t, o.Apply(t.Context(), "c2", "apiVersion: strait.io"+policies))
	skipped := func() string {
		return kubectl(t, "c2", "get", "servicepolicy", "too-early", "-o", `jsonpath=made {.status.mirrored}{range .status.skipped[*]}, {.service} {.reason}{end}`)
	}
	testutil.Eventually(t, within, func() error { // nothing can be called yet, and people are told why
		return equal("status of the policy", skipped(), "made 0, c1/default/important-service NoEntry, c1/default/important-service-headless NotSupported")
	})

	began := time.Now()
	must(t, o.script(t, path, blocks[0].Script()))
	t.Logf("the entry and the pin took %.1f s", time.Since(began).Seconds())
	must(t, o.script(t, path, blocks[1].Script()))
	o.calledByAll(t, c2, "important-service.default.svc.cluster.local")
	testutil.Eventually(t, within, func() error {
		return equal("status of the policy", skipped(), "made 1, c1/default/important-service-headless NotSupported")
	})
	// Each page's block waits for nothing: a person looks again, too.
	testutil.Eventually(t, within, func() error { return o.script(t, path, blocks[2].Script()) })
	for _, name := range []string{"important-service-of-c1", "important-service-early"} {
		o.calledByAll(t, c2, name+".default.svc.cluster.local")
	}
	for _, node := range []string{"c1n1", "c1n2", "c2n1", "c2n2"} {
		// What the policy leaves out is a problem, with which the command ends with an error.
		status, _ := o.In(t.Context(), []string{node}, kubelab.DaemonContainer, "/strait", "status", "--ascii")
		if others := strings.ReplaceAll(status, "STR2208", ""); !strings.Contains(status, "clusterset of 2 clusters") || strings.Contains(others, "STR") {
			t.Errorf("strait status on %s:\n%s", node, status)
		}
	}
	if out, err := c2.run(1, "curl -sS --max-time 2 http://10.201.255.254/"); err == nil {
		t.Errorf("a ClusterIP that no Service has answers: %v", out)
	}

	undo()
	testutil.Eventually(t, within, func() error {
		return equal("status of the policy", skipped(), "made 0, c1/default/important-service NoEntry, c1/default/important-service-headless NotSupported")
	})
}

// calledByAll waits until pods on both nodes of a cluster are answered at a name by both servers of c1.
func (o *ops) calledByAll(t *testing.T, m *member, name string) {
	t.Helper()
	for node := range 2 {
		testutil.Eventually(t, within, func() error {
			answers, err := m.on(node+1).calls(12, name)
			if err != nil {
				return err
			}
			answers = slices.Compact(slices.Sorted(slices.Values(answers)))
			if len(answers) != 2 || !strings.HasPrefix(answers[0], "ops-c1-") || !strings.HasPrefix(answers[1], "ops-c1-") {
				return fmt.Errorf("%s is answered in %sn%d by %q, want both pods of ops-c1", name, m.name, node+1, answers)
			}
			return nil
		})
	}
}

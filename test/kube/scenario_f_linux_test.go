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
	"strait.io/strait/test/pages"
)

// cloudMapService is what a user of the Cloud Map controller has: five pods in c1, and the namespace in c2.
const cloudMapService = `
apiVersion: v1
kind: Service
metadata: {name: my-amazing-service, namespace: hello}
spec: {selector: {app: my-amazing-service}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: my-amazing-service, namespace: hello}
spec:
  replicas: 5
  selector: {matchLabels: {app: my-amazing-service}}
  template:
    metadata: {labels: {app: my-amazing-service}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: serve, image: "localhost/agnhost:1", args: [netexec, --http-port=8080]}]
`

// TestScenarioF is what the Cloud Map controller of EKS is used for, by the commands of docs/from/eks.md.
func TestScenarioF(t *testing.T) {
	o := newOps(t)
	_, c2 := apart(t)
	for _, c := range []string{"c1", "c2"} {
		kubectl(t, c, "create", "namespace", "hello")
		t.Cleanup(func() {
			for _, args := range [][]string{{"namespace", "hello"}, {"clusterproperty", "cluster.clusterset.k8s.io", "clusterset.k8s.io"}} {
				if _, err := o.Kubectl(context.Background(), c, nil, append([]string{"delete", "--wait=false", "--ignore-not-found"}, args...)...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	must(t, o.Apply(t.Context(), "c1", cloudMapService))
	kubectl(t, "c1", "-n", "hello", "rollout", "status", "deployment/my-amazing-service", "--timeout=90s")

	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	path := o.commands(t)
	blocks := pages.Of(all, pages.EKS)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks to execute, want 3: properties, export, scale", len(blocks))
	}
	must(t, o.script(t, path, blocks[0].Script()))
	must(t, o.script(t, path, blocks[1].Script()))
	o.cloudMapEndpoints(t, 5)
	ip := o.vipIn(t, "c2", "hello", "my-amazing-service")
	c2.resolves("my-amazing-service.hello.svc.clusterset.local", "A", ip)

	// An export of c2 does not take c1's endpoints away.
	must(t, o.Apply(t.Context(), "c2", strings.Replace(cloudMapService, "replicas: 5", "replicas: 1", 1)))
	must(t, o.script(t, path, strings.ReplaceAll(blocks[1].Script(), "c1", "c2")))
	o.cloudMapEndpoints(t, 6)
	kubectl(t, "c2", "-n", "hello", "delete", "serviceexport/my-amazing-service")
	o.cloudMapEndpoints(t, 5)

	must(t, o.script(t, path, blocks[2].Script()))
	began := time.Now()
	o.cloudMapEndpoints(t, 6)
	t.Logf("c2 had six endpoints %.2f s after the command that waits for them in c1", time.Since(began).Seconds())
	c2.resolves("my-amazing-service.hello.svc.clusterset.local", "A", ip)
	if status := o.inStrait(t, "c2n1", "status", "--ascii"); strings.Contains(status, "ClusterProperty") {
		t.Errorf("strait status complains about the ClusterProperties:\n%s", status)
	}
}

// cloudMapEndpoints waits until c2 has so many ready endpoints of the import.
func (o *ops) cloudMapEndpoints(t *testing.T, want int) {
	t.Helper()
	testutil.Eventually(t, 30*time.Second, func() error {
		out, err := o.Kubectl(t.Context(), "c2", nil, "-n", "hello", "get", "endpointslices", "-l", "multicluster.kubernetes.io/service-name=my-amazing-service",
			"-o", `jsonpath={range .items[*].endpoints[?(@.conditions.ready==true)]}{.addresses[0]}{"\n"}{end}`)
		if got := slices.Compact(slices.Sorted(slices.Values(strings.Fields(out)))); err == nil && len(got) != want {
			err = fmt.Errorf("%d endpoints in c2, want %d: %v", len(got), want, got)
		}
		return err
	})
}

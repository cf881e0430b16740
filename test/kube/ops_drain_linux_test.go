package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// opsBoth is a Service whose pods are those of one cluster's DaemonSet, exported by both clusters.
const opsBoth = `
apiVersion: v1
kind: Service
metadata: {name: ops-both}
spec: {selector: {app: ops-%s}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: ops-both}
`

// testDrain rolls a Service out from one cluster to the other by weights, and drains a cluster and a node. Calls go on
// meanwhile, and none fails.
func testDrain(t *testing.T, o *ops) {
	for _, c := range []string{"c1", "c2"} {
		must(t, o.Apply(t.Context(), c, fmt.Sprintf(opsBoth, c)))
		t.Cleanup(func() {
			_, err := o.Kubectl(context.Background(), c, nil, "delete", "--wait=false", "service/ops-both", "serviceexport/ops-both")
			if err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range []string{"c1", "c2"} {
		o.vip(t, c, "ops-both")
	}
	load := o.startLoadOn(t, "drain", "ops-both")
	since := time.Now()
	o.sends(t, 1, "in its own cluster")
	for _, weight := range []int{0, 10, 50, 100} {
		kubectl(t, "c1", "annotate", "--overwrite", "service", "ops-both", fmt.Sprintf("service.strait.io/weights=c1=%d,c2=%d", 100-weight, weight))
		o.sends(t, 1-float64(weight)/100, fmt.Sprintf("with %d %% in c2", weight))
		o.counts(t, load, 1-float64(weight)/100, fmt.Sprintf("with %d %% in c2", weight))
	}
	kubectl(t, "c1", "annotate", "service", "ops-both", "service.strait.io/weights-")
	o.sends(t, 1, "without weights")

	out, err := o.cli(t, "c1", "cluster", "drain", "c1", "--dry-run")
	if err != nil || !strings.Contains(out, "default/ops-both") {
		t.Errorf("dry run: %v\n%s", err, out)
	}
	if out, err = o.cli(t, "c1", "cluster", "drain", "c1"); err == nil || !strings.Contains(out, "no other endpoint serves") || !strings.Contains(out, "default/ops-c1") {
		t.Errorf("ops-c1 has pods in c1 only: %v\n%s", err, out)
	}
	began := time.Now()
	out, err = o.cli(t, "c1", "cluster", "drain", "c1", "--force")
	if err != nil {
		t.Fatalf("drain: %v\n%s", err, out)
	}
	o.sends(t, 0, "drained")
	o.counts(t, load, 0, "drained")
	t.Logf("a drain took %s, with the commands", time.Since(began).Round(100*time.Millisecond))
	if out = o.inStrait(t, "c1n1", "status"); !strings.Contains(out, "drained 100 %") {
		t.Errorf("status does not say that c1 is drained:\n%s", out)
	}
	o.remains(t)
	if out, err = o.cli(t, "c1", "cluster", "undrain", "c1"); err != nil {
		t.Errorf("undrain: %v\n%s", err, out)
	}
	o.sends(t, 1, "not drained any more")

	kubectl(t, "c1", "annotate", "node", "c1n1", "c1n2", "strait.io/drain=true")
	o.sends(t, 0, "with all nodes drained")
	kubectl(t, "c1", "annotate", "node", "c1n1", "c1n2", "strait.io/drain-")
	o.sends(t, 1, "with no node drained")

	for _, node := range []string{"c1n1", "c1n2"} {
		kubectl(t, "c1", "cordon", node)
		defer kubectl(t, "c1", "uncordon", node)
	}
	o.sends(t, 0, "with all nodes cordoned")
	for _, node := range []string{"c1n1", "c1n2"} {
		kubectl(t, "c1", "uncordon", node)
	}
	o.sends(t, 1, "with no node cordoned")
	load.mustBeWhole(t, since)
}

// remains checks that what is open to the drained c1 is counted on all nodes: the load keeps one connection, which it
// had before the drain. Nodes of clusters without a context are named, and a wait does not end while one is open.
func (o *ops) remains(t *testing.T) {
	t.Helper()
	testutil.Eventually(t, 30*time.Second, func() error {
		out, err := o.cliAll(t, "cluster", "status", "c1", "--context", "c1", "--context", "c2")
		if err != nil || !strings.Contains(out, "cluster c1 is drained 100 %: ") || !strings.Contains(out, " on 4 nodes") || !strings.Contains(out, "\nc1/c1n1  ") {
			err = fmt.Errorf("cluster status: %v\n%s", err, out)
		}
		return err
	})
	if out, err := o.cliAll(t, "cluster", "status", "c1", "--context", "c1"); err != nil || !strings.Contains(out, "c2/c2n1, c2/c2n2") {
		t.Errorf("without c2, cluster status does not name its nodes: %v\n%s", err, out)
	}
	if out, err := o.cliAll(t, "cluster", "status", "c1", "--context", "c1", "--context", "c2", "--wait", "--timeout=5s"); err == nil {
		t.Errorf("a wait ends while a connection is open:\n%s", out)
	}
}

// counts makes new connections from the load's pod, and checks which part of them pods of c1 answered. Five standard
// deviations are what chance may add.
func (o *ops) counts(t *testing.T, l load, want float64, when string) {
	t.Helper()
	const calls = 500
	out, err := o.InCluster(t.Context(), l.cluster, kubelab.Container{Namespace: "default", Pod: l.name, Name: "new"}, "curl", "-sS", "-H", "Connection: close", "-w", "\n",
		fmt.Sprintf("http://%s/hostname?[1-%d]", o.vip(t, "c1", "ops-both"), calls))
	must(t, err)
	home, all := 0, lines(out)
	for _, pod := range all {
		if strings.HasPrefix(pod, "ops-c1-") {
			home++
		}
	}
	got := float64(home) / float64(max(len(all), 1))
	if len(all) != calls || math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/calls) {
		t.Errorf("%s: pods of c1 answered %.1f %% of %d calls, want %.1f %% of %d", when, 100*got, len(all), 100*want, calls)
	}
	t.Logf("%s: pods of c1 answered %.1f %% of %d calls", when, 100*got, len(all))
}

// sends waits until the clients of a node of c1 send this part of their connections to ops-both to c1.
func (o *ops) sends(t *testing.T, want float64, when string) {
	t.Helper()
	testutil.Eventually(t, 30*time.Second, func() error {
		var e api.Explanation
		if err := json.Unmarshal([]byte(o.inStrait(t, "c1n1", "explain", "default/ops-both", "-o", "json")), &e); err != nil {
			return err
		}
		home := 0.0
		for _, f := range e.Service.Frontends {
			for _, x := range f.Endpoints {
				if x.Cluster == "c1" {
					home += x.Share / float64(len(e.Service.Frontends))
				}
			}
			if !f.InKernel {
				return fmt.Errorf("%s: the kernel does not hold the plan", when)
			}
		}
		if math.Abs(home-want) > 0.001 {
			return fmt.Errorf("%s: %.1f %% stay in c1, want %.1f %%", when, 100*home, 100*want)
		}
		return nil
	})
}

package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// testRollingUpdate: every daemon of both clusters is replaced, and no call notices.
func testRollingUpdate(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-roll")
	start := time.Now()
	for _, c := range []string{"c1", "c2"} {
		kubectl(t, c, "-n", "strait-system", "rollout", "restart", "daemonset/strait")
	}
	for _, c := range []string{"c1", "c2"} {
		kubectl(t, c, "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
	}
	t.Logf("4 daemons were replaced in %.1f s", time.Since(start).Seconds())
	time.Sleep(2 * time.Second) // what the last of them does once it is ready
	l.mustBeWhole(t, start)
}

// testTunnelPod: the process that encrypts in user space goes, and with it packets of all that is on the node, until the
// next one runs. Another pod and process must take its place, and calls must succeed again, by new connections and by
// the client that keeps one. For how long they fail is only measured: it is the time that Kubernetes takes to start a pod.
func testTunnelPod(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-tunnel")
	uid, process := o.tunnel(t)
	start := time.Now()
	kubectl(t, "c1", "-n", "strait-system", "delete", "pod", o.daemon(t, "c1", "c1n1", "tunnel"))
	testutil.Eventually(t, 60*time.Second, func() error {
		nextUID, next := o.tunnel(t)
		if nextUID == "" || nextUID == uid || next == "" || next == process {
			return fmt.Errorf("pod %q and process %q, want one of each other than %s and %s", nextUID, next, uid, process)
		}
		return nil
	})
	t.Logf("another pod was there after %.1f s", time.Since(start).Seconds())
	for _, container := range []string{"new", "kept"} {
		t.Logf("%s: calls failed for %.1f s", container, l.mustRecover(t, container, start).Seconds())
	}
}

// tunnel tells the tunnel's pod on c1n1 from its next, and its process, by the path in the node's /proc. Both are empty
// while there is none.
func (o *ops) tunnel(t *testing.T) (uid, process string) {
	t.Helper()
	uid = kubectl(t, "c1", "-n", "strait-system", "get", "pods", "-l", "app.kubernetes.io/component=tunnel",
		"--field-selector", "spec.nodeName=c1n1", "-o", "jsonpath={.items[*].metadata.uid}")
	process, err := o.OnNode(t.Context(), "c1n1", "sh", "-c", "grep -lz '^tunnel$' /proc/[0-9]*/cmdline 2>/dev/null; true")
	must(t, err)
	return uid, process
}

// testAPIServerDown: what is served stays served, and what changed elsewhere still arrives, for that comes by
// gossip. A minute is longer than any deadline of strait's (the Lease's 6 s, the watches', the gossip's) and than the 50 s
// in which Kubernetes gives up on a node that it does not hear of.
func testAPIServerDown(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-api")
	start := time.Now()
	must(t, o.StopAPIServer(t.Context(), "c1"))
	time.Sleep(time.Minute)
	must(t, o.StartAPIServer(t.Context(), "c1"))
	back := time.Now()
	o.exportWithin(t, "late-api", 30*time.Second)
	t.Logf("an export made once it was back arrived elsewhere after %.1f s", time.Since(back).Seconds())
	l.mustBeWhole(t, start)
	// Once no pod of the next part was Ready within 30 s of this one.
	kubectl(t, "c1", "wait", "nodes", "--all", "--for=condition=Ready", "--timeout=120s")
}

// exportWithin exports a Service in c1, and waits until c2 has the import.
func (o *ops) exportWithin(t *testing.T, name string, within time.Duration) {
	t.Helper()
	must(t, o.Apply(t.Context(), "c1", fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: ops-c1}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: %[1]s}
`, name)))
	defer kubectl(t, "c1", "delete", "--wait=false", "service/"+name, "serviceexport/"+name)
	testutil.Eventually(t, within, func() error {
		_, err := o.Kubectl(t.Context(), "c2", nil, "get", "serviceimport", name)
		return err
	})
}

// written is all that leaders wrote in a cluster, with UIDs: what was deleted and made again differs.
func (o *ops) written(t *testing.T, cluster string) string {
	t.Helper()
	format := `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`
	return kubectl(t, cluster, "get", "serviceimports", "-A", "-o", format) +
		kubectl(t, cluster, "get", "services,endpointslices", "-A", "-l", "strait.io/service-import", "-o", format) +
		kubectl(t, cluster, "get", "endpointslices", "-A", "-l", "endpointslice.kubernetes.io/managed-by=strait.io", "-o", format)
}

// testLeaderDies: another leads, from what it already knows, and takes nothing away. The dead is killed again whenever it
// comes back, for its node would lead on if it were quicker than the Lease.
func testLeaderDies(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-leader")
	holder := func() string {
		return kubectl(t, "c1", "-n", "strait-system", "get", "lease", "strait-leader", "-o", "jsonpath={.spec.holderIdentity}")
	}
	// After an outage, Kubernetes takes pods for ready only bit by bit.
	kubectl(t, "c1", "rollout", "status", "daemonset/ops-c1", "--timeout=120s")
	var before string
	testutil.Eventually(t, time.Minute, func() error {
		before = o.written(t, "c1")
		for _, service := range []string{"ops-c1", "ops-c2"} {
			if strings.Count(before, "EndpointSlice "+service+"-") < 3 { // one of the import, and one of the derived Service twice
				return fmt.Errorf("%s has no slices for its import and its derived Service:\n%s", service, before)
			}
		}
		return nil
	})
	first := holder()
	start := time.Now()
	testutil.Eventually(t, 20*time.Second, func() error {
		_, err := o.OnNode(t.Context(), first, "sh", "-c",
			"for f in $("+daemonProcesses+"); do f=${f#/proc/}; kill -9 ${f%/cmdline} 2>/dev/null; done; true")
		must(t, err)
		if now := holder(); now == "" || now == first {
			return fmt.Errorf("%q leads, want another than %s", now, first)
		}
		return nil
	})
	t.Logf("%s leads after %s for %.1f s", holder(), first, time.Since(start).Seconds())
	o.exportWithin(t, "late-leader", 15*time.Second)
	t.Logf("an export arrived %.1f s after the leader went", time.Since(start).Seconds())
	testutil.Eventually(t, 10*time.Second, func() error { // late-leader goes again
		if after := o.written(t, "c1"); after != before {
			return fmt.Errorf("objects of c1 were\n%s\nand are\n%s", before, after)
		}
		return nil
	})
	kubectl(t, "c1", "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
	l.mustBeWhole(t, start)
}

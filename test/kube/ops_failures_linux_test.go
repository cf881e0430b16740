package kube

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// shape is a way in which a Service of another cluster is called, and the scenarios that use it.
type shape struct {
	name, rows string
	// chosen says that strait chooses for each connection, and so among all clusters. kube-proxy
	// serves mirrors, which have the pods of one.
	chosen bool
}

var shapes = []shape{
	{"import-", "C, E, F, H, I, L", true},
	{"join-", "G, J, K", true},
	{"mirror-", "A4, B", false},
	{"entry-", "A3", false},
}

// failing is what is called: servers of c2 first, and those of c1 when there are no others.
const failing = `
apiVersion: v1
kind: Service
metadata: {name: fails-import, annotations: {service.strait.io/prefer: "c2,c1"}}
spec: {selector: {app: ops-%[1]s}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: fails-import}
---
apiVersion: v1
kind: Service
metadata: {name: fails-join, annotations: {service.strait.io/global: "true", service.strait.io/affinity: %[2]s}}
spec: {selector: {app: ops-%[1]s}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: fails-mirror}
spec: {from: [c2], to: [c1], as: mirror, select: [{namespaces: [default], names: [fails-mirror]}]}
---
apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: fails-entry}
spec: {from: [c2], to: [c1], as: mirror, name: fails-entry, endpoints: clusterIP, select: [{namespaces: [default], names: [fails-mirror]}]}
`

const failingMirror = `
apiVersion: v1
kind: Service
metadata: {name: fails-mirror}
spec: {selector: {app: ops-c2}, ports: [{port: 80, targetPort: 8080}]}
`

// failures are what happens, in this order. Each returns when it is over.
var failures = []struct {
	name string
	// unnoticed says that no call may fail and no connection break.
	unnoticed bool
	happen    func(*testing.T, *ops, load)
}{
	{"a pod is killed", false, podKilled},
	{"the daemon of the client's node restarts", true, func(t *testing.T, o *ops, _ load) { o.restartDaemon(t, "c1", "c1n1") }},
	{"the daemon of a server's node restarts", true, func(t *testing.T, o *ops, _ load) { o.restartDaemon(t, "c2", "c2n1") }},
	{"the other cluster's API server stops", true, apiServerStopped},
	{"the link between the clusters is cut", false, linkCut},
	{"a server's node gets new keys", false, keysRotated},
	{"a node of the other cluster dies", false, nodeKilled},
}

// testFailures lets everything happen once to all shapes at a time, and says for each how many calls
// failed, until when, and how many connections broke.
func testFailures(t *testing.T, o *ops) {
	o.makeEntry(t, "strait.io/cluster-ips=10.202.0.0/16", "10.12.0.0/16,10.202.0.0/16")
	defer o.makeEntry(t, "strait.io/cluster-ips-", "10.12.0.0/16")
	l := o.startFailing(t)
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			start, flaws := l.endure(t, o, f.happen, f.unnoticed)
			for _, flaw := range flaws {
				t.Error(flaw)
			}
			for _, s := range shapes {
				for _, container := range []string{"new", "kept"} {
					l.mustRecover(t, s.name+container, start)
				}
				t.Logf("%s (%s): %s", f.name, s.rows, l.damage(t, s, start))
			}
		})
	}
}

// endure has something happen, and returns since when, and which calls failed if none may. On a busy machine,
// a single call of 2,800 to 3,700 failed in some runs while the other cluster's API server stopped: a mirror's
// was refused at once, or one through the entry timed out. The cause is not known. What fails because the API
// server stops does so each time. So if one call failed, the same happens again, up to four times in all.
func (l load) endure(t *testing.T, o *ops, happen func(*testing.T, *ops, load), unnoticed bool) (start time.Time, flaws []string) {
	t.Helper()
	for range 4 {
		start, flaws = time.Now(), nil
		happen(t, o, l)
		time.Sleep(time.Second) // what comes after it
		if !unnoticed {
			break
		}
		for _, s := range shapes {
			flaws = append(flaws, l.flaws(t, s.name, start)...)
		}
		if len(flaws) != 1 {
			break
		}
		t.Logf("one call: %s", flaws[0])
	}
	return start, flaws
}

// makeEntry sets the annotation of c2n1 about ClusterIPs, and the ranges that are pinned of c2.
func (o *ops) makeEntry(t *testing.T, annotation, ranges string) {
	t.Helper()
	kubectl(t, "c2", "annotate", "node", "c2n1", annotation)
	if out, err := o.cliAll(t, "clusterset", "connect", "--context", "c1", "--context", "c2", "--yes", "--pods", "c2="+ranges); err != nil {
		t.Fatalf("connect: %v\n%s", err, out)
	}
}

// startFailing makes the Services and calls them.
func (o *ops) startFailing(t *testing.T) load {
	t.Helper()
	for _, c := range []struct{ name, affinity, more string }{{"c1", "remote", ""}, {"c2", "local", "---" + failingMirror}} {
		must(t, o.Apply(t.Context(), c.name, fmt.Sprintf(failing, c.name, c.affinity)+c.more))
		t.Cleanup(func() {
			_, err := o.Kubectl(context.Background(), c.name, nil, "delete", "--wait=false", "--ignore-not-found", "serviceexport/fails-import",
				"service/fails-import", "service/fails-join", "service/fails-mirror", "servicepolicy/fails-mirror", "servicepolicy/fails-entry")
			if err != nil {
				t.Error(err)
			}
		})
	}
	clusterIP := func(service string) (ip string) {
		testutil.Eventually(t, 30*time.Second, func() (err error) {
			ip, err = o.Kubectl(t.Context(), "c1", nil, "get", "service", service, "-o", "jsonpath={.spec.clusterIP}")
			return err
		})
		return ip
	}
	addresses := map[string]string{
		"import-": o.vip(t, "c1", "fails-import"), "join-": clusterIP("fails-join"), "mirror-": clusterIP("fails-mirror"), "entry-": clusterIP("fails-entry"),
	}
	c1 := clientOf(t, o.Lab, "c1")
	for name, ip := range addresses { // only then do the connections that are kept lead to c2
		testutil.Eventually(t, within, func() error {
			for _, a := range c1.calls(1, 12, ip) {
				if !strings.HasPrefix(a, "ops-c2-") {
					return fmt.Errorf("%s is answered by %q, want only pods of c2", name, a)
				}
			}
			return nil
		})
	}
	return o.startLoads(t, "load-failures", addresses)
}

// damage says what a failure did.
func (l load) damage(t *testing.T, s shape, since time.Time) string {
	t.Helper()
	calls := l.calls(t, s.name+"new", since)
	failed, last := failedOf(calls, since)
	broken := 0
	for _, c := range l.calls(t, s.name+"kept", since) {
		if !c.ok || c.connects != "0" {
			broken++
		}
	}
	return fmt.Sprintf("%s %d of %d new calls failed, the last after %.1f s; the kept connection broke %d times", s.name, failed, len(calls), last.Seconds(), broken)
}

// failedOf counts the calls that failed, and says when the last one did.
func failedOf(calls []call, since time.Time) (failed int, last time.Duration) {
	for _, c := range calls {
		if !c.ok {
			failed, last = failed+1, c.ended.Sub(since)
		}
	}
	return failed, last
}

func podKilled(t *testing.T, o *ops, _ load) {
	pod, _ := podOn(t, "c2", "ops-c2", "c2n2")
	kubectl(t, "c2", "delete", "pod", pod, "--grace-period=0", "--force")
	kubectl(t, "c2", "rollout", "status", "daemonset/ops-c2", "--timeout=60s")
}

// restartDaemon replaces strait's pod of a node.
func (o *ops) restartDaemon(t *testing.T, cluster, node string) {
	t.Helper()
	kubectl(t, cluster, "-n", "strait-system", "delete", "pod", o.daemon(t, cluster, node, "daemon"))
	kubectl(t, cluster, "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
}

// keysRotated takes the keys of a node away, as docs/security.md says, so that its daemon makes
// others. The other cluster believes these, and has a tunnel by them.
func keysRotated(t *testing.T, o *ops, _ load) {
	const node, dir = "c2n1", "/var/lib/strait/"
	known := func() string {
		for _, line := range lines(o.inStrait(t, "c1n1", "members", "--ascii")) {
			if fields := strings.Fields(line); fields[0] == node {
				return regexp.MustCompile(`SHA256:\S+`).FindString(line)
			}
		}
		return ""
	}
	before, start := known(), time.Now()
	out, err := o.OnNode(t.Context(), node, "rm", dir+"node.key", dir+"wireguard.key")
	if err != nil || before == "" {
		t.Fatalf("the node had the key %q: %v %s", before, err, out)
	}
	o.restartDaemon(t, "c2", node)
	t.Logf("the daemon with new keys was ready after %.1f s", time.Since(start).Seconds())
	testutil.Eventually(t, 30*time.Second, func() error {
		if now := known(); now == "" || now == before {
			return fmt.Errorf("c1 knows %s by the key %q, and by %q before", node, now, before)
		}
		return nil
	})
	t.Logf("the other cluster knew them after %.1f s", time.Since(start).Seconds())
}

func apiServerStopped(t *testing.T, o *ops, _ load) {
	must(t, o.StopAPIServer(t.Context(), "c2"))
	time.Sleep(10 * time.Second)
	must(t, o.StartAPIServer(t.Context(), "c2"))
}

// linkCut drops all packets between the clusters' nodes. Where this cluster has pods too, they must
// answer before the link is back.
func linkCut(t *testing.T, o *ops, l load) {
	start := time.Now()
	const lasts, last = 15 * time.Second, 3 * time.Second
	o.cut(t, "add")
	time.Sleep(lasts)
	for _, s := range shapes {
		failed, after := failedOf(l.calls(t, s.name+"new", start), start)
		t.Logf("%s while the link is cut, %d calls fail, the last after %.1f s", s.name, failed, after.Seconds())
		if s.chosen && (failed == 0 || after > lasts-last) {
			t.Errorf("%s calls fail until %.1f s after the cut, %d of them; want some, and none in the last %s", s.name, after.Seconds(), failed, last)
		}
	}
	o.cut(t, "del")
}

// cut adds or removes the rules by which the router between the clusters drops packets.
func (o *ops) cut(t *testing.T, verb string) {
	t.Helper()
	for i, c := range o.Topology.Clusters {
		to := o.Topology.Clusters[1-i].Underlay.String()
		argv := []string{"-n", o.Name + "-fabric", "rule", verb, "iif", "nodes-" + c.Name, "to", to, "priority", "10", "blackhole"}
		if out, err := exec.Command("ip", argv...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", argv, err, out)
		}
	}
}

// nodeKilled: calls go to the dead node's pods for 6 s at most where strait chooses. Beside it: when
// Kubernetes itself knows.
func nodeKilled(t *testing.T, o *ops, l load) {
	start := time.Now()
	must(t, o.NodeDown(t.Context(), "c2n2"))
	time.Sleep(12 * time.Second)
	for _, s := range shapes {
		failed, last := failedOf(l.calls(t, s.name+"new", start), start)
		t.Logf("%s %d calls failed, the last %.1f s after the node died", s.name, failed, last.Seconds())
		if s.chosen && (failed == 0 || last > 6*time.Second) {
			t.Errorf("%s the dead node's pods were called until %.1f s after its death, in %d calls; want some, and 6 s at most", s.name, last.Seconds(), failed)
		}
	}
	testutil.Eventually(t, 90*time.Second, func() error {
		ready := kubectl(t, "c2", "get", "node", "c2n2", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if ready == "True" {
			return errors.New("Kubernetes still believes that the node is Ready")
		}
		return nil
	})
	t.Logf("Kubernetes' own condition of the node knew after %.1f s", time.Since(start).Seconds())
	back := time.Now()
	must(t, o.NodeUp(t.Context(), "c2n2"))
	kubectl(t, "c2", "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
	kubectl(t, "c2", "rollout", "status", "daemonset/ops-c2", "--timeout=60s")
	t.Logf("the node and strait were back after %.1f s, %.1f s after it was started", time.Since(start).Seconds(), time.Since(back).Seconds())
	for _, s := range shapes {
		failed, last := failedOf(l.calls(t, s.name+"new", back), back)
		t.Logf("%s %d calls failed since it was started, the last after %.1f s", s.name, failed, last.Seconds())
	}
}

package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// load is a pod that calls a Service of the other cluster all the time: container new with a connection for each
// call, container kept with one connection for all. Its log is written by its node, whatever the API server does.
type load struct {
	o             *ops
	cluster, name string
}

// caller is one curl: --rate bounds the log, not the calls' outcome. It writes to stderr, which has no buffer that
// would hold lines, and so their time, back.
const caller = `  - {name: %s, image: "localhost/shell:1", command: [curl, -s, --connect-timeout, "0.4", --max-time, "%s", --rate, 100/s, -o, /dev/null, ` +
	`-w, '%%{stderr}%%{http_code} %%{num_connects} %%{errormsg}\n', %s "http://%s/hostname?[1-100000000]"]}
`

// call is a line of the log.
type call struct {
	ended    time.Time
	ok       bool
	connects string
	message  string
}

func (o *ops) startLoad(t *testing.T, name string) load {
	t.Helper()
	vip := o.vip(t, "c1", "ops-c2")
	o.shell(t, "c1", name, "c1n1", "", "  containers:\n"+
		fmt.Sprintf(caller, "new", "2", `-H, "Connection: close",`, vip)+fmt.Sprintf(caller, "kept", "5", "", vip))
	l := load{o, "c1", name}
	testutil.Eventually(t, 15*time.Second, func() error {
		for _, container := range []string{"new", "kept"} {
			if len(l.calls(t, container, time.Time{})) < 100 {
				return fmt.Errorf("fewer than 100 calls of %s", container)
			}
		}
		return nil
	})
	return l
}

// calls are those that ended since a time.
func (l load) calls(t *testing.T, container string, since time.Time) (out []call) {
	t.Helper()
	for line := range strings.Lines(l.o.kubectl(t, l.cluster, "logs", l.name, "-c", container, "--timestamps")) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
		ended, err := time.Parse(time.RFC3339Nano, fields[0])
		must(t, err)
		if len(fields) < 3 || ended.Before(since) {
			continue // a line that is being written
		}
		out = append(out, call{ended, fields[1] == "200", fields[2], strings.Join(fields[3:], " ")})
	}
	return out
}

// mustBeWhole demands that no call failed since a time, and that the kept connection is still the one.
func (l load) mustBeWhole(t *testing.T, since time.Time) {
	t.Helper()
	for _, container := range []string{"new", "kept"} {
		calls := l.calls(t, container, since)
		failed := 0
		for _, c := range calls {
			if !c.ok || container == "kept" && c.connects != "0" {
				if failed++; failed <= 5 {
					t.Errorf("%s: a call failed or connected anew after %.1f s: %+v", container, c.ended.Sub(since).Seconds(), c)
				}
			}
		}
		t.Logf("%s: %d of %d calls failed in %.1f s", container, failed, len(calls), time.Since(since).Seconds())
		if len(calls) < int(time.Since(since).Seconds())*10 {
			t.Errorf("%s: only %d calls: the client stood still", container, len(calls))
		}
	}
}

// testRollingUpdate: every daemon of both clusters is replaced, and no call notices.
func testRollingUpdate(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-roll")
	start := time.Now()
	for _, c := range []string{"c1", "c2"} {
		o.kubectl(t, c, "-n", "strait-system", "rollout", "restart", "daemonset/strait")
	}
	for _, c := range []string{"c1", "c2"} {
		o.kubectl(t, c, "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
	}
	t.Logf("4 daemons were replaced in %.1f s", time.Since(start).Seconds())
	time.Sleep(2 * time.Second) // what the last of them does once it is ready
	l.mustBeWhole(t, start)
}

// testTunnelPod: the process that encrypts in user space goes, and with it packets of all that is on the node, until the
// next one runs. It must heal by itself, established connections too; for how long calls fail is measured.
func testTunnelPod(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-tunnel")
	start := time.Now()
	o.kubectl(t, "c1", "-n", "strait-system", "delete", "pod", o.daemon(t, "c1", "c1n1", "tunnel"))
	o.kubectl(t, "c1", "-n", "strait-system", "rollout", "status", "daemonset/strait-tunnel", "--timeout=60s")
	time.Sleep(2 * time.Second)
	var healed time.Time
	testutil.Eventually(t, 40*time.Second, func() error {
		calls := l.calls(t, "new", start)
		last := len(calls) - 1
		for last >= 0 && calls[last].ok {
			last--
		}
		if len(calls)-last < 100 && last >= 0 || len(calls) < 100 {
			return fmt.Errorf("of %d calls, fewer than the last 100 are well", len(calls))
		}
		if healed = start; last >= 0 { // it may be back before anybody notices
			healed = calls[last].ended
		}
		return nil
	})
	t.Logf("calls with new connections failed for %.1f s", healed.Sub(start).Seconds())
	if kept := l.calls(t, "kept", healed.Add(5*time.Second)); len(kept) > 0 && !kept[len(kept)-1].ok {
		t.Errorf("the client with one connection does not recover: %+v", kept[len(kept)-1])
	}
}

// testAPIServerDown: what is served stays served, and what changed elsewhere still arrives, for that comes by
// gossip. 15 s and not a minute: everything that has a deadline in strait (the Lease's 6 s, the watches' and the
// gossip's) is over by then, and each test's time is everybody's.
func testAPIServerDown(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-api")
	start := time.Now()
	must(t, o.StopAPIServer(t.Context(), "c1"))
	time.Sleep(15 * time.Second)
	must(t, o.StartAPIServer(t.Context(), "c1"))
	back := time.Now()
	o.exportWithin(t, "late-api", 30*time.Second)
	t.Logf("an export made once it was back arrived elsewhere after %.1f s", time.Since(back).Seconds())
	l.mustBeWhole(t, start)
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
	defer o.kubectl(t, "c1", "delete", "--wait=false", "service/"+name, "serviceexport/"+name)
	testutil.Eventually(t, within, func() error {
		_, err := o.Kubectl(t.Context(), "c2", nil, "get", "serviceimport", name)
		return err
	})
}

// written is all that leaders wrote in a cluster, with UIDs: what was deleted and made again differs.
func (o *ops) written(t *testing.T, cluster string) string {
	t.Helper()
	format := `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`
	return o.kubectl(t, cluster, "get", "serviceimports", "-A", "-o", format) +
		o.kubectl(t, cluster, "get", "services,endpointslices", "-A", "-l", "strait.io/service-import", "-o", format) +
		o.kubectl(t, cluster, "get", "endpointslices", "-A", "-l", "endpointslice.kubernetes.io/managed-by=strait.io", "-o", format)
}

// testLeaderDies: another leads, from what it already knows, and takes nothing away.
func testLeaderDies(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-leader")
	holder := func() string {
		return o.kubectl(t, "c1", "-n", "strait-system", "get", "lease", "strait-leader", "-o", "jsonpath={.spec.holderIdentity}")
	}
	before, first := o.written(t, "c1"), holder()
	if strings.Count(before, "\n") < 4 {
		t.Fatalf("too little is written to tell: %s", before)
	}
	start := time.Now()
	o.kubectl(t, "c1", "-n", "strait-system", "delete", "pod", "--grace-period=0", "--force", o.daemon(t, "c1", first, "daemon"))
	testutil.Eventually(t, 20*time.Second, func() error {
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
	o.kubectl(t, "c1", "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
	l.mustBeWhole(t, start)
}

// testNodeKill: calls go to the dead node's pods for 6 s at most. Kubernetes itself knows after about 50 s, which is
// not waited for.
func testNodeKill(t *testing.T, o *ops) {
	l := o.startLoad(t, "load-node")
	start := time.Now()
	must(t, o.NodeDown(t.Context(), "c2n2"))
	time.Sleep(12 * time.Second)
	calls := l.calls(t, "new", start)
	failed, last := 0, time.Duration(0)
	for _, c := range calls {
		if !c.ok {
			failed, last = failed+1, c.ended.Sub(start)
		}
	}
	ready := o.kubectl(t, "c2", "get", "node", "c2n2", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	t.Logf("%d of %d calls failed, the last %.1f s after the node died; Kubernetes says after %.1f s that its condition Ready is %s",
		failed, len(calls), last.Seconds(), time.Since(start).Seconds(), ready)
	if failed == 0 {
		t.Error("no call failed: did the node serve any?")
	}
	if last > 6*time.Second || len(calls) < 200 {
		t.Errorf("the dead node's pods were called until %.1f s after its death, in %d calls; want 6 s at most", last.Seconds(), len(calls))
	}
	must(t, o.NodeUp(t.Context(), "c2n2"))
	o.kubectl(t, "c2", "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
	o.kubectl(t, "c2", "rollout", "status", "daemonset/ops-c2", "--timeout=60s")
	t.Logf("the node and strait were back after %.1f s", time.Since(start).Seconds())
}

package kube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// testEveryCNI: pods and the host's network call each other's cluster, by name: c1 has podCIDRs, c2 has none.
func testEveryCNI(t *testing.T, o *ops) {
	for i, c := range []string{"c1", "c2"} {
		other := []string{"c2", "c1"}[i]
		o.shell(t, c, "client", c+"n1", "", idle)
		o.shell(t, c, "host-client", c+"n2", "", "  hostNetwork: true\n  dnsPolicy: ClusterFirstWithHostNet\n"+idle)
		for _, pod := range []string{"client", "host-client"} {
			// Both of the other cluster's nodes must answer, so that no node's prefix is missing.
			seen := map[string]bool{}
			testutil.Eventually(t, 20*time.Second, func() error {
				got, err := get(t.Context(), o.Lab, c, pod, "http://ops-"+other+".default.svc.clusterset.local/hostname")
				if err == nil {
					seen[got] = true
				}
				if len(seen) < 2 {
					return fmt.Errorf("%s of %s: pods %v of %s have answered, want 2 (%v)", pod, c, seen, other, err)
				}
				return nil
			})
		}
	}
}

// connections is a script that dials an address and port, and tells to which addresses the
// machine's sockets are connected meanwhile.
const connections = "{ sleep 1 | timeout 3 nc %s; } >/dev/null 2>&1 & sleep 0.5; netstat -tn | grep ESTABLISHED || true"

// testOptOut: a pod with the annotation dials the ClusterSetIP as it is, and is served by
// kube-proxy; one without dials the backend.
func testOptOut(t *testing.T, o *ops) {
	vip := o.vip(t, "c1", "ops-c2")
	if out := o.inStrait(t, "c1n1", "status"); strings.Contains(out, "opt-out") {
		t.Errorf("no pod opts out, and yet strait complains:\n%s", out)
	}
	o.shell(t, "c1", "left-alone", "c1n1", `, annotations: {strait.io/opt-out: "true"}`, idle)
	o.shell(t, "c1", "balanced", "c1n1", "", idle)
	// The address that a socket is connected to, by the kernel's own list of sockets.
	dialled := func(pod string) string {
		out, err := inPod(t.Context(), o.Lab, "c1", pod, "sh", "-c", fmt.Sprintf(connections, vip+" 80"))
		must(t, err)
		return out
	}
	testutil.Eventually(t, 20*time.Second, func() error {
		if got := dialled("left-alone"); !strings.Contains(got, vip+":80 ") {
			return fmt.Errorf("the pod that opts out has connections %q, want one to %s", got, vip)
		}
		return nil
	})
	if got := dialled("balanced"); strings.Contains(got, vip+":80 ") || !strings.Contains(got, ":8080 ") {
		t.Errorf("the pod beside it has connections %q, want one to a backend", got)
	}
	if got, err := get(t.Context(), o.Lab, "c1", "left-alone", "http://"+vip+"/hostname"); err != nil || !strings.HasPrefix(got, "ops-c2-") {
		t.Errorf("the pod that opts out is answered %q (%v) by way of kube-proxy", got, err)
	}
	if out := o.inStrait(t, "c1n1", "opt-out", "list"); !strings.Contains(out, "/pod") {
		t.Errorf("opt-out list:\n%s", out)
	}
	if out := o.inStrait(t, "c1n1", "status"); !strings.Contains(out, "no problems") {
		t.Errorf("status:\n%s", out)
	}
}

// testWords: what a person reads in a daemon's pod.
func testWords(t *testing.T, o *ops) {
	vip := o.vip(t, "c1", "ops-c2")
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"status"}, []string{"clusterset of 2 clusters · seen from c1/c1n1", "c1 ✓ here 2/2", "c2 ✓ joined 2/2", "mesh userspace", "✓ no problems"}},
		{[]string{"services"}, []string{"default/ops-c1", "default/ops-c2 ClusterSetIP " + vip + " c2 2/2"}},
		{[]string{"explain", "default/ops-c2"}, []string{"default/ops-c2 · ClusterSetIP " + vip + " · exported by c2",
			vip + ":80/TCP · new connections go to clusterset 100 % (c2) · kernel map agrees", "c2/c2n1 ", "c2/c2n2 ", " ops-c2-"}},
		{[]string{"nodes"}, []string{"c1/c1n1 ✓ self", "c2/c2n1 ✓ alive", "c2/c2n2 ✓ alive"}},
	} {
		out := o.inStrait(t, "c1n1", tc.args...)
		t.Logf("strait %s\n%s", strings.Join(tc.args, " "), out)
		text := strings.Join(lines(out), "\n")
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("strait %s lacks %q", strings.Join(tc.args, " "), want)
			}
		}
	}
}

// testMemory: an idle daemon's own memory. The program's pages and the maps that it looks into
// count as resident too, and are not its own: the kernel drops the former, and has the latter
// anyway.
func testMemory(t *testing.T, o *ops) {
	const limit = 40 << 10
	for _, node := range []string{"c1n1", "c1n2", "c2n1", "c2n2"} {
		out, err := o.OnNode(t.Context(), node, "sh", "-c",
			"for f in $("+daemonProcesses+"); do cat ${f%cmdline}status 2>/dev/null; done; true")
		must(t, err)
		kb := map[string]int{}
		for _, line := range lines(out) {
			if fields := strings.Fields(line); len(fields) == 3 && slices.Contains([]string{"VmRSS:", "RssAnon:", "RssFile:"}, fields[0]) {
				kb[fields[0]], err = strconv.Atoi(fields[1])
				must(t, err)
			}
		}
		t.Logf("%s: resident %.1f MB, of it own %.1f MB, files and maps %.1f MB", node,
			float64(kb["VmRSS:"])/1024, float64(kb["RssAnon:"])/1024, float64(kb["RssFile:"])/1024)
		if kb["RssAnon:"] == 0 || kb["RssAnon:"] > limit {
			t.Errorf("%s: the daemon's own memory is %d kB, want at most %d", node, kb["RssAnon:"], limit)
		}
	}
}

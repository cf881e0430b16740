package kube

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/pages"
)

// ownDNS is the address that the documentation gives strait's own DNS.
const ownDNS = "169.254.20.11"

// noVIP is an exported headless Service with the pods of the other one.
const noVIP = `
apiVersion: v1
kind: Service
metadata: {name: ops-headless}
spec: {clusterIP: None, selector: {app: ops-c2}, ports: [{port: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: ops-headless}
`

// testOwnDNS: strait's own DNS in place of CoreDNS's multicluster, switched on, used and switched off as documented. Pods
// of each node reach their node's, whatever the CNI; and by CoreDNS, which forwards the zone, all pods do.
func testOwnDNS(t *testing.T, o *ops) {
	want := o.ownNames(t)
	o.setOwnDNS(t, "{"+ownDNS+":53}", "cluster.local")
	defer o.takeOwnDNSBack(t)
	for _, c := range o.Topology.Clusters {
		for _, n := range c.Nodes {
			pod := "dns-" + n.Name
			o.shell(t, c.Name, pod, n.Name, "", idle)
			for _, protocol := range []string{"+notcp", "+tcp"} {
				o.answers(t, c.Name, pod, want, "@"+ownDNS, protocol)
			}
			o.answers(t, c.Name, pod, map[string]func(string) []string{
				"ops-c2.default.svc.cluster.local.": want["ops-c2.default.svc.clusterset.local."], "nothing.default.svc.cluster.local.": nil,
			}, "@"+ownDNS)
		}
	}

	_, err := o.cli(t, "c1", "dns", "setup", "--undo")
	must(t, err)
	coreDNS(t)
	plain := corefileOf(t, "c1")
	defer func() {
		writeCorefile(t, plain)
		if out, err := o.cli(t, "c1", "dns", "setup"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	const name = "ops-c2.default.svc.clusterset.local."
	if a := o.dig(t, "c1", "dns-c1n1", name); a.status == "NOERROR" {
		t.Fatalf("CoreDNS still answers by itself: %+v", a)
	}
	writeCorefile(t, plain+serverBlock(t))
	kubectl(t, "c1", "-n", "kube-system", "rollout", "restart", "deployment/coredns")
	for _, ip := range coreDNS(t) { // each has a cache of its own
		o.answers(t, "c1", "dns-c1n1", want, "@"+ip)
	}
	o.answers(t, "c1", "dns-c1n1", want)
	got, err := get(t.Context(), o.Lab, "c1", "dns-c1n1", "http://ops-c2.default.svc.clusterset.local/hostname")
	if err != nil || !strings.HasPrefix(got, "ops-c2-") {
		t.Errorf("by its name a server of c2 answers %q (%v)", got, err)
	}
	o.restartUnnoticed(t, name)
}

// ownNames are names, in the absolute form, and the addresses that they have in every cluster: all but those of
// ClusterSetIPs, which each cluster chooses for itself.
func (o *ops) ownNames(t *testing.T) map[string]func(cluster string) []string {
	t.Helper()
	must(t, o.Apply(t.Context(), "c2", noVIP))
	t.Cleanup(func() {
		if _, err := o.Kubectl(context.Background(), "c2", nil, "delete", "service/ops-headless", "serviceexport/ops-headless"); err != nil {
			t.Error(err)
		}
	})
	_, one := podOn(t, "c2", "ops-c2", "c2n1")
	_, two := podOn(t, "c2", "ops-c2", "c2n2")
	return map[string]func(string) []string{
		"ops-c2.default.svc.clusterset.local.":       func(c string) []string { return []string{o.vip(t, c, "ops-c2")} },
		"ops-headless.default.svc.clusterset.local.": func(string) []string { return sorted([]string{one, two}) },
		"nothing.default.svc.clusterset.local.":      nil, // no such name
	}
}

// answers waits until a pod is told the names' addresses, and demands that it is told at once.
func (o *ops) answers(t *testing.T, cluster, pod string, want map[string]func(string) []string, args ...string) {
	t.Helper()
	for name, addresses := range want {
		var a answer
		testutil.Eventually(t, 30*time.Second, func() error {
			a = o.dig(t, cluster, pod, append([]string{name}, args...)...)
			if addresses == nil {
				return equal("status of "+name, a.status, "NXDOMAIN")
			}
			return equal(name, a.addresses, addresses(cluster))
		})
		t.Logf("%s %s %v: %s %v in %s", pod, name, args, a.status, a.addresses, a.took)
		if a.took > time.Second {
			t.Errorf("%s: %s took %s", pod, name, a.took)
		}
	}
}

// answer is what dig says.
type answer struct {
	status    string
	addresses []string // sorted
	took      time.Duration
}

// dig asks for a name's addresses, once. No answer is the zero value.
func (o *ops) dig(t *testing.T, cluster, pod string, args ...string) (a answer) {
	t.Helper()
	out, _ := inPod(t.Context(), o.Lab, cluster, pod, append([]string{"dig", "+time=2", "+tries=1", "-t", "A"}, args...)...)
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if _, status, found := strings.Cut(line, "status: "); found {
			a.status, _, _ = strings.Cut(status, ",")
		} else if ms, found := strings.CutPrefix(line, ";; Query time: "); found {
			n, err := strconv.Atoi(strings.Fields(ms)[0])
			must(t, err)
			a.took = time.Duration(n) * time.Millisecond
		} else if len(fields) == 5 && fields[3] == "A" {
			a.addresses = append(a.addresses, fields[4])
		}
	}
	slices.Sort(a.addresses)
	return a
}

// setOwnDNS has strait listen in both clusters, also for local names that fall through.
func (o *ops) setOwnDNS(t *testing.T, listen, fallThrough string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range o.Topology.Clusters {
		wg.Go(func() {
			if out, err := o.cli(t, c.Name, "upgrade", "--set", "dns.listen="+listen, "--set", "dns.fallThrough="+fallThrough); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
}

// takeOwnDNSBack demands that no node keeps the address.
func (o *ops) takeOwnDNSBack(t *testing.T) {
	t.Helper()
	const held = "ip route get " + ownDNS + " | grep -w local; true"
	before, err := o.OnNode(t.Context(), "c1n1", "sh", "-c", held)
	must(t, err)
	if before == "" {
		t.Errorf("c1n1 has no address %s: this test would not see it stay", ownDNS)
	}
	o.setOwnDNS(t, "null", "null")
	for _, c := range o.Topology.Clusters {
		for _, n := range c.Nodes {
			testutil.Eventually(t, 10*time.Second, func() error {
				out, err := o.OnNode(t.Context(), n.Name, "sh", "-c", held)
				if err == nil && out != "" {
					err = fmt.Errorf("%s still has %s", n.Name, out)
				}
				return err
			})
		}
	}
}

// writeCorefile gives CoreDNS of c1 another configuration, which it reads when it starts.
func writeCorefile(t *testing.T, text string) {
	t.Helper()
	kubectl(t, "c1", "-n", "kube-system", "patch", "configmap", "coredns", "--type=merge", "-p", fmt.Sprintf(`{"data": {"Corefile": %q}}`, text))
}

// coreDNS waits until CoreDNS of c1 has been replaced, and returns the addresses of its pods. Pods that are on their way out
// still answer, by their former configuration.
func coreDNS(t *testing.T) (ips []string) {
	t.Helper()
	kubectl(t, "c1", "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=90s")
	testutil.Eventually(t, 60*time.Second, func() error {
		ips = strings.Fields(kubectl(t, "c1", "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].status.podIP}"))
		wanted := kubectl(t, "c1", "-n", "kube-system", "get", "deployment/coredns", "-o", "jsonpath={.spec.replicas}")
		return equal("pods of CoreDNS", fmt.Sprint(len(ips)), wanted)
	})
	return ips
}

// serverBlock is what the documentation tells people to write into CoreDNS's configuration.
func serverBlock(t *testing.T) string {
	t.Helper()
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	for _, p := range all {
		for _, b := range pages.Blocks(p) {
			if p.Path == "docs/kubernetes.md" && b.Lang == "corefile" && strings.HasPrefix(b.Text, "clusterset.local:53 {\n") {
				return b.Text
			}
		}
	}
	t.Fatal("docs/kubernetes.md has no server block for clusterset.local")
	return ""
}

// restartUnnoticed: who asks CoreDNS for a name that was asked before is answered while all daemons of c1 are replaced. It
// asks twice, as a pod's resolver does: on a busy machine a datagram can get lost.
func (o *ops) restartUnnoticed(t *testing.T, name string) {
	t.Helper()
	want := o.vip(t, "c1", "ops-c2")
	const stop = "/tmp/stop"
	var out string
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		out, failed = inPod(t.Context(), o.Lab, "c1", "dns-c1n1", "sh", "-c",
			"until [ -e "+stop+" ]; do dig +short +time=2 +tries=2 "+name+" | grep '^[^;]' || echo none; sleep 0.1; done")
	})
	start := time.Now()
	kubectl(t, "c1", "-n", "strait-system", "rollout", "restart", "daemonset/strait")
	kubectl(t, "c1", "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
	_, err := inPod(t.Context(), o.Lab, "c1", "dns-c1n1", "touch", stop)
	must(t, err)
	wg.Wait()
	must(t, failed)
	asked := lines(out)
	t.Logf("%d questions in %.1f s", len(asked), time.Since(start).Seconds())
	if wrong := slices.DeleteFunc(asked, func(line string) bool { return line == want }); len(wrong) > 0 || out == "" {
		t.Errorf("%d questions were answered wrongly while daemons were replaced: %q", len(wrong), wrong)
	}
}

package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// install is the command as InstallStrait gives it.
func (o *ops) install(t *testing.T, cluster, id string, more ...string) (string, error) {
	t.Helper()
	args := append([]string{"install", "--cluster", id, "--image", o.strait.Image}, kubelab.Settings...)
	return o.cli(t, cluster, append(args, more...)...)
}

// pods are strait's in a cluster, each with its generation and how often its containers restarted.
// Those that are being deleted are not among them: an earlier test deletes some and does not wait.
func (o *ops) pods(t *testing.T, cluster string) string {
	t.Helper()
	return kubectl(t, cluster, "-n", "strait-system", "get", "pods", "-o",
		"go-template={{range .items}}{{if not .metadata.deletionTimestamp}}Pod {{.metadata.name}} {{.metadata.uid}} {{.metadata.generation}} "+
			`{{range .status.containerStatuses}}{{.restartCount}} {{end}}{{"\n"}}{{end}}{{end}}`)
}

// testInstallTwice: the second time nothing is written and no pod restarts.
func testInstallTwice(t *testing.T, o *ops) {
	get := func(kinds, fields string, more ...string) string {
		args := append([]string{"get", kinds, "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name} " + fields + `{"\n"}{end}`}, more...)
		return kubectl(t, "c1", args...)
	}
	const ours = "app.kubernetes.io/part-of=strait"
	state := func() string {
		// The generation, since the status changes by itself.
		return o.pods(t, "c1") +
			get("daemonsets,deployments", "{.metadata.uid} {.metadata.generation}", "-n", "strait-system") +
			get("configmaps,secrets,serviceaccounts,roles,rolebindings", "{.metadata.resourceVersion}", "-n", "strait-system", "-l", ours) +
			get("clusterroles,clusterrolebindings,customresourcedefinitions", "{.metadata.resourceVersion}", "-l", ours)
	}
	before := state()
	for _, kind := range []string{"Pod ", "DaemonSet ", "Deployment ", "ConfigMap ", "Secret ", "ServiceAccount ", "Role ", "RoleBinding ", "ClusterRole ", "ClusterRoleBinding ",
		"CustomResourceDefinition "} {
		if !strings.Contains("\n"+before, "\n"+kind) {
			t.Errorf("no %sis found: this test would not see it change:\n%s", kind, before)
		}
	}
	out, err := o.install(t, "c1", "c1")
	must(t, err)
	for _, line := range lines(out) {
		if did, _, _ := strings.Cut(line, " "); slices.Contains([]string{"created", "changed", "deleted"}, did) {
			t.Errorf("install again says %q", line)
		}
	}
	if after := state(); after != before {
		t.Errorf("before the second install\n%s\nafter\n%s", before, after)
	}
}

// testUninstall: nothing stays, another cluster's id is refused, and install works again.
func testUninstall(t *testing.T, o *ops) {
	for _, node := range []string{"c2n1", "c2n2"} {
		must(t, o.HasTraces(t.Context(), node))
	}
	start := time.Now()
	out, err := o.cli(t, "c2", "uninstall")
	t.Logf("uninstall took %.1f s and says\n%s", time.Since(start).Seconds(), out)
	must(t, err)
	o.mustBeGone(t, "c2")
	// The others were told: a daemon that only stops withdraws nothing.
	testutil.Eventually(t, 10*time.Second, func() error {
		if got := kubectl(t, "c1", "get", "serviceimport", "ops-c2", "--ignore-not-found", "-o", "name"); got != "" {
			return fmt.Errorf("c1 still has %s", got)
		}
		return nil
	})
	t.Run("DuplicateID", func(t *testing.T) { testDuplicateID(t, o) })
	must(t, o.InstallStrait(t.Context(), o.strait))
	o.shell(t, "c2", "again", "c2n1", "", idle)
	testutil.Eventually(t, 20*time.Second, func() error {
		got, err := get(t.Context(), o.Lab, "c2", "again", "http://ops-c1.default.svc.clusterset.local/hostname")
		if err == nil && !strings.HasPrefix(got, "ops-c1-") {
			err = fmt.Errorf("answered by %q", got)
		}
		return err
	})
}

// mustBeGone demands that nothing of strait is in a cluster but what people made.
func (o *ops) mustBeGone(t *testing.T, cluster string) {
	t.Helper()
	c, err := o.Topology.Cluster(cluster)
	must(t, err)
	for _, n := range c.Nodes {
		out, err := o.Traces(t.Context(), n.Name)
		must(t, err)
		if out != "" {
			t.Errorf("%s: strait left\n%s", n.Name, out)
		}
	}
	all := kubectl(t, cluster, "get", "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions,"+
		"validatingadmissionpolicies,validatingadmissionpolicybindings,priorityclasses", "-o", "name")
	all += kubectl(t, cluster, "get", "services,endpointslices,leases,serviceimports,roles,rolebindings,configmaps,secrets,serviceaccounts,daemonsets,deployments,poddisruptionbudgets,networkpolicies,pods",
		"-A", "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
	for _, line := range lines(all) {
		line := strings.ReplaceAll(line, clientsNamespace, "") // the tests' own
		if strings.Contains(line, "strait") || strings.Contains(line, "/derived-") || strings.HasPrefix(line, "ServiceImport/") || strings.Contains(line, "about.k8s.io") {
			t.Errorf("%s: strait left %s", cluster, line)
		}
	}
	if corefile := kubectl(t, cluster, "-n", "kube-system", "get", "configmap", "coredns", "-o", "yaml"); strings.Contains(corefile, "clusterset") {
		t.Errorf("%s: CoreDNS still has the clusterset:\n%s", cluster, corefile)
	}
	// The users' export stays, without a word of strait's.
	export := kubectl(t, cluster, "get", "serviceexport", "ops-"+cluster, "-o", "yaml", "--show-managed-fields")
	for _, word := range []string{"manager: strait", "conditions:", "type: Valid"} {
		if strings.Contains(export, word) {
			t.Errorf("%s: the export still has %q:\n%s", cluster, word, export)
		}
	}
}

// testDuplicateID: a cluster whose id is another's is not joined, and nothing is written.
func testDuplicateID(t *testing.T, o *ops) {
	secret := func(c string) string {
		return kubectl(t, c, "-n", "strait-system", "get", "secret", "strait-clusterset", "-o", "jsonpath={.metadata.resourceVersion}")
	}
	_, err := o.install(t, "c2", "c1", "--wait=false")
	must(t, err)
	before := secret("c1") + " " + secret("c2")
	out, err := o.cliAll(t, "clusterset", "connect", "--context", "c1", "--context", "c2")
	t.Logf("connect of two clusters of one id says\n%s", out)
	if err == nil || !strings.Contains(out, "both have the cluster id c1") || !strings.Contains(out, "--cluster") {
		t.Errorf("connect of two clusters of one id: %v, and it says\n%s", err, out)
	}
	if after := secret("c1") + " " + secret("c2"); after != before {
		t.Errorf("the Secrets were changed all the same: %s, then %s", before, after)
	}
	_, err = o.cli(t, "c2", "uninstall")
	must(t, err)
}

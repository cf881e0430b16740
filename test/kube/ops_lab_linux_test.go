package kube

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/kubelab/apiserver"
)

// ops is the lab, and the strait that is in it.
type ops struct {
	*kubelab.Lab
	strait kubelab.Strait
}

// TestOps operates strait as people and accidents do. Its parts follow each other, the most
// destructive last; each leaves the lab working.
func TestOps(t *testing.T) {
	o := newOps(t)
	for _, c := range []string{"c1", "c2"} {
		o.startServers(t, c)
	}
	for _, part := range []struct {
		name string
		test func(*testing.T, *ops)
	}{
		{"EveryCNI", testEveryCNI},
		{"OptOut", testOptOut},
		{"Rights", testRights},
		{"Look", testLook},
		{"HelmTest", testHelmTest},
		{"Questions", testQuestions},
		{"Connectivity", testConnectivity},
		{"Flows", testFlows},
		{"Words", testWords},
		{"Memory", testMemory},
		{"OwnDNS", testOwnDNS},
		{"Faults", testFaults},
		{"Drain", testDrain},
		{"Authority", testAuthority},
		{"InstallTwice", testInstallTwice},
		{"PagesThatJoin", testPagesThatJoin},
		{"RollingUpdate", testRollingUpdate},
		{"TunnelPod", testTunnelPod},
		{"APIServerDown", testAPIServerDown},
		{"LeaderDies", testLeaderDies},
		{"Failures", testFailures},
		{"Upgrade", testUpgrade},
		{"Uninstall", testUninstall},
		{"Pages", testPages},
		{"GitOps", testGitOps},
		{"Release", testRelease},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, o) })
	}
}

// newOps is the test's lab. In one that was there before the tests, this source's strait takes the
// place of what is there.
func newOps(t *testing.T) *ops {
	t.Helper()
	o := &ops{theLab(t), sharedOf(t).strait}
	if sharedOf(t).kept {
		var err error
		o.strait, err = installStrait(o.Lab, apiserver.Options(t).Source, t.TempDir())
		must(t, err)
	}
	return o
}

// cli runs strait against a cluster.
func (o *ops) cli(t *testing.T, cluster string, args ...string) (string, error) {
	t.Helper()
	return o.cliAll(t, append(args, "--context", cluster)...)
}

func (o *ops) cliAll(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), o.strait.CLI, append(args, "--kubeconfig", o.Kubeconfig())...).CombinedOutput()
	return string(out), err
}

// opsServers is an exported Service with a pod on each node of its cluster. Pods of a dead node
// need not be waited for.
const opsServers = `
apiVersion: v1
kind: Service
metadata: {name: ops-%[1]s}
spec: {selector: {app: ops-%[1]s}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: ops-%[1]s}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ops-%[1]s}
spec:
  selector: {matchLabels: {app: ops-%[1]s}}
  template:
    metadata: {labels: {app: ops-%[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: serve, image: "localhost/agnhost:1", args: [netexec, --http-port=8080]}]
`

// startServers makes them, and waits until both clusters have the import.
func (o *ops) startServers(t *testing.T, cluster string) {
	t.Helper()
	must(t, o.Apply(t.Context(), cluster, fmt.Sprintf(opsServers, cluster)))
	t.Cleanup(func() {
		_, err := o.Kubectl(context.Background(), cluster, nil, "delete", "--wait=false", "--ignore-not-found", "daemonset/ops-"+cluster, "service/ops-"+cluster, "serviceexport/ops-"+cluster)
		if err != nil {
			t.Error(err)
		}
	})
	kubectl(t, cluster, "rollout", "status", "daemonset/ops-"+cluster, "--timeout=60s")
	for _, c := range o.Topology.Clusters {
		o.vip(t, c.Name, "ops-"+cluster)
	}
}

// vip is the ClusterSetIP of an import, once it has one.
func (o *ops) vip(t *testing.T, cluster, name string) string {
	t.Helper()
	return o.vipIn(t, cluster, "default", name)
}

// vipIn is vip in a namespace.
func (o *ops) vipIn(t *testing.T, cluster, namespace, name string) (ip string) {
	t.Helper()
	testutil.Eventually(t, 15*time.Second, func() (err error) {
		ip, err = o.Kubectl(t.Context(), cluster, nil, "-n", namespace, "get", "serviceimport", name, "-o", "jsonpath={.spec.ips[0]}")
		if err == nil && ip == "" {
			err = fmt.Errorf("import %s/%s of %s has no address", namespace, name, cluster)
		}
		return err
	})
	return ip
}

// shell starts a pod of the shell image, with lines of a pod's YAML more, and removes it when the test ends.
func (o *ops) shell(t *testing.T, cluster, name, node, metadata, spec string) {
	t.Helper()
	must(t, o.Apply(t.Context(), cluster, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s%s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
%s
`, name, metadata, node, spec)))
	t.Cleanup(func() {
		if _, err := o.Kubectl(context.Background(), cluster, nil, "delete", "pod", name, "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	kubectl(t, cluster, "wait", "pod/"+name, "--for=condition=Ready", "--timeout=90s")
}

const idle = `  containers: [{name: shell, image: "localhost/shell:1", command: [sleep, infinity]}]`

// daemon is the name of strait's pod on a node.
func (o *ops) daemon(t *testing.T, cluster, node, component string) string {
	t.Helper()
	return kubectl(t, cluster, "-n", "strait-system", "get", "pods", "-l", "app.kubernetes.io/component="+component,
		"--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].metadata.name}")
}

// daemonProcesses lists the daemons of a node, by the path in its /proc.
const daemonProcesses = "grep -lzx -- --config=/etc/strait/strait.yaml /proc/[0-9]*/cmdline 2>/dev/null"

// inStrait runs strait's CLI in its pod on a node.
func (o *ops) inStrait(t *testing.T, node string, args ...string) string {
	t.Helper()
	out, err := o.In(t.Context(), []string{node}, kubelab.DaemonContainer, append([]string{"/strait"}, args...)...)
	must(t, err)
	return out
}

// lines are those of a text that are not empty, each with single spaces.
func lines(text string) (out []string) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			out = append(out, strings.Join(fields, " "))
		}
	}
	return out
}

package install

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/test/kubelab/apiserver"
)

// coreDNS is what dns setup looks for: it runs nowhere.
const coreDNS = `
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors # ours
        kubernetes cluster.local in-addr.arpa ip6.arpa {
           pods insecure
        }
        forward . /etc/resolv.conf
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  replicas: 0
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      containers: [{name: coredns, image: "registry.k8s.io/coredns/coredns:v1.12.2"}]
      volumes: [{name: config, configMap: {name: coredns}}]
`

// nodeLocal is NodeLocal DNSCache as Kubernetes' addon has it, which forwards only the cluster's
// zones to CoreDNS. It runs nowhere.
const nodeLocal = `
apiVersion: v1
kind: ConfigMap
metadata: {name: node-local-dns, namespace: kube-system}
data:
  Corefile: |
    cluster.local:53 {
        bind 169.254.20.10
        forward . __PILLAR__CLUSTER__DNS__ {
            force_tcp
        }
    }
    .:53 {
        forward . __PILLAR__UPSTREAM__SERVERS__
    }
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: node-local-dns, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: node-local-dns}}
  template:
    metadata: {labels: {k8s-app: node-local-dns}}
    spec:
      nodeSelector: {nowhere: "true"}
      containers: [{name: node-cache, image: "k8s-dns-node-cache:1.26.4"}]
      volumes: [{name: config, configMap: {name: node-local-dns}}]
`

// Where pods ask NodeLocal DNSCache, it learns the zone too, and forgets it again.
func TestNodeLocalDNS(t *testing.T) {
	u := newUser(t)
	if err := apiserver.Lab(t, 2).Apply(t.Context(), "c2", coreDNS+"---"+nodeLocal); err != nil {
		t.Fatal(err)
	}
	defer func() { // TestDNS begins without
		for _, o := range []string{"configmap/coredns", "deployment/coredns", "configmap/node-local-dns", "daemonset/node-local-dns"} {
			u.kubectl("c2", "-n", "kube-system", "delete", o)
		}
	}()
	read := func() string {
		return u.kubectl("c2", "-n", "kube-system", "get", "configmap", "node-local-dns", "-o", "jsonpath={.data.Corefile}")
	}
	before := read()
	setup := []string{"dns", "setup", "--context", "c2"}
	u.does([]string{"install", "--context", "c2", "--cluster", "c2", "--wait=false"})
	u.uninstallAtEnd("c2")
	u.does(with(setup, "--dry-run"), "ConfigMap kube-system/coredns", "ConfigMap kube-system/node-local-dns", "clusterset.local:53 cluster.local:53")
	if read() != before {
		t.Fatal("a dry run changed NodeLocal DNSCache")
	}
	u.does(setup, "CoreDNS answers", "NodeLocal DNSCache answers")
	if got := read(); !strings.Contains(got, "clusterset.local:53 cluster.local:53 {\n    bind") {
		t.Errorf("Corefile of NodeLocal DNSCache:\n%s", got)
	}
	mark := func() string {
		return u.kubectl("c2", "-n", "kube-system", "get", "daemonset", "node-local-dns", "-o", `jsonpath={.spec.template.metadata.annotations.strait\.io/corefile-hash}`)
	}
	if mark() == "" {
		t.Error("NodeLocal DNSCache was not restarted")
	}
	u.does(setup, "NodeLocal DNSCache answers", "already up to date")
	u.does(with(setup, "--undo"), "NodeLocal DNSCache no longer answers")
	if got := read(); got != before || mark() != "" {
		t.Errorf("after --undo, mark %q:\n%s", mark(), got)
	}
}

func TestDNS(t *testing.T) {
	u := newUser(t)
	setup := []string{"dns", "setup", "--context", "c2"}
	u.fails(setup, "no CoreDNS", "docs/kubernetes.md")
	if err := apiserver.Lab(t, 2).Apply(t.Context(), "c2", coreDNS); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		return u.kubectl("c2", "-n", "kube-system", "get", "configmap", "coredns", "-o", "jsonpath={.data.Corefile}")
	}
	before := read()
	u.does(with(setup, "--dry-run"), "multicluster clusterset.local")
	if read() != before {
		t.Fatal("a dry run changed the Corefile")
	}
	u.does(setup, "CoreDNS answers")
	if got := read(); !strings.Contains(got, "multicluster clusterset.local") || !strings.Contains(got, "errors # ours") {
		t.Errorf("Corefile %s", got)
	}
	u.does(setup, "already up to date", "CoreDNS answers")

	// What an earlier attempt left undone is done, and waited for.
	generation := func() string {
		return u.kubectl("c2", "-n", "kube-system", "get", "deployment", "coredns", "-o", "jsonpath={.metadata.generation}")
	}
	settled := generation()
	u.kubectl("c2", "-n", "kube-system", "patch", "configmap", "coredns", "--type=merge", "-p", fmt.Sprintf(`{"data":{"Corefile":%q}}`, before+"\n"))
	u.does(setup, "CoreDNS answers")
	if generation() == settled {
		t.Error("a person took the Corefile back; it was written again, and CoreDNS not restarted")
	}
	u.kubectl("c2", "-n", "kube-system", "scale", "deployment", "coredns", "--replicas=1") // there is no node for it
	u.fails(with(setup, "--timeout", "3s"), "wait for CoreDNS", "not done within 3s")
	u.kubectl("c2", "-n", "kube-system", "scale", "deployment", "coredns", "--replicas=0")
	if got := u.traces("c2"); !strings.Contains(got, "strait-coredns") {
		t.Errorf("CoreDNS has no right to read imports: %s", got)
	}
	u.does(with(setup, "--undo"), "no longer answers")
	if got := read(); got != before {
		t.Errorf("after --undo the Corefile is %s", got)
	}
	if got := u.traces("c2"); strings.Contains(got, "strait-coredns") {
		t.Errorf("rights that --undo left: %s", got)
	}
}

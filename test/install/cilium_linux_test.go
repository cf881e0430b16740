package install

import (
	"strings"
	"testing"

	"strait.io/strait/test/kubelab/apiserver"
)

// cilium is what its chart, version 1.19, writes with bpf.masquerade, as far as strait looks at it.
// No node runs the agent.
const cilium = `
apiVersion: v1
kind: ConfigMap
metadata: {name: cilium-config, namespace: kube-system}
data:
  enable-bpf-masquerade: "true"
  install-no-conntrack-iptables-rules: "false"
  kube-proxy-replacement: "false"
  ipam: cluster-pool
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: cilium, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: cilium}}
  template:
    metadata: {labels: {k8s-app: cilium}}
    spec:
      nodeSelector: {nowhere: "true"}
      containers: [{name: cilium-agent, image: "quay.io/cilium/cilium:v1.19.4"}]
`

// ovnNode is a Node of OpenShift's default, gateway mode shared.
const ovnNode = `
apiVersion: v1
kind: Node
metadata:
  name: worker-0
  annotations: {k8s.ovn.org/l3-gateway-config: '{"default":{"mode":"shared","bridge-id":"br-ex","next-hops":["192.0.2.1"]}}'}
`

// Before an install beside OVN-Kubernetes, its gateway mode is named if pods' packets do not see
// the node's routes.
func TestOVN(t *testing.T) {
	u := newUser(t)
	lab := apiserver.Lab(t, 2)
	if err := lab.Apply(t.Context(), "c1", ovnNode); err != nil {
		t.Fatal(err)
	}
	defer u.kubectl("c1", "delete", "node/worker-0")
	u.does(with(installC1, "--dry-run"), "! c1: Node worker-0: metadata.annotations[k8s.ovn.org/l3-gateway-config]: OVN-Kubernetes is in gateway mode shared (on 1 of 1 nodes)")
	u.kubectl("c1", "annotate", "--overwrite", "node/worker-0", `k8s.ovn.org/l3-gateway-config={"default":{"mode":"local"}}`)
	if out := u.does(with(installC1, "--dry-run")); strings.Contains(out, "OVN") {
		t.Errorf("through the host: %s", out)
	}
}

// Before an install, and in a dry run of one, stands what Cilium's settings mean beside strait.
func TestCilium(t *testing.T) {
	u := newUser(t)
	lab := apiserver.Lab(t, 2)
	if out := u.does(with(installC1, "--dry-run")); strings.Contains(out, "ilium") {
		t.Errorf("without Cilium: %s", out)
	}
	if err := lab.Apply(t.Context(), "c1", cilium); err != nil {
		t.Fatal(err)
	}
	defer u.kubectl("c1", "-n", "kube-system", "delete", "configmap/cilium-config", "daemonset/cilium")
	u.does(with(installC1, "--dry-run"), `! c1: ConfigMap kube-system/cilium-config: enable-bpf-masquerade: "true"`,
		"! c1: DaemonSet kube-system/cilium: image quay.io/cilium/cilium:v1.19.4", "dry run: nothing was changed")
	if out := u.does(with(installC1, "--dry-run", "--set", "cgroup.belowRoot=true")); strings.Contains(out, "image quay.io") {
		t.Errorf("the agent minds nothing below the root: %s", out)
	}
	u.kubectl("c1", "-n", "kube-system", "patch", "configmap", "cilium-config", "-p", `{"data": {"kube-proxy-replacement": "true", "devices": "eth0"}}`)
	out := u.does(with(installC1, "--wait=false"), "created  DaemonSet")
	u.uninstallAtEnd("c1")
	if strings.Contains(out, "cilium-config") || strings.Contains(out, "image quay.io") {
		t.Errorf("it still warns of what was mended: %s", out)
	}
}

package leader

import (
	"fmt"
	"strings"
	"testing"
)

// TestTenant: a tenant who may write EndpointSlices in its namespace lists a port of the node, another
// namespace's Pod, and a ClusterIP. The other cluster gets the Pods of the namespace alone: its own, and
// the one that uses the network of its node once there is one.
func TestTenant(t *testing.T) {
	w := newWorld(t, nil)
	other := w.ns + "-other"
	w.namespace("c1", other)
	w.apply("c1", `{apiVersion: v1, kind: Node, metadata: {name: c1-node}, spec: {podCIDRs: [10.11.0.0/24], podCIDR: 10.11.0.0/24}}`)
	w.undo("c1", "delete", "node", "c1-node")
	w.kubectl("c1", "patch", "node", "c1-node", "--subresource=status", "--type=merge", "-p", `{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.11"}]}}`)
	pod := func(namespace, name, addr string, host bool) {
		t.Helper()
		_, err := w.lab.Kubectl(t.Context(), "c1", fmt.Appendf(nil, `{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {nodeName: c1-node, hostNetwork: %v,
automountServiceAccountToken: false, containers: [{name: a, image: a}], tolerations: [{operator: Exists}]}}`, name, host), "-n", namespace, "apply", "-f", "-")
		w.must(err)
		w.kubectl("c1", "-n", namespace, "patch", "pod", name, "--subresource=status", "--type=merge", "-p",
			fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"hostIPs":[{"ip":"192.0.2.11"}],"hostIP":"192.0.2.11"}}`, addr, addr))
		w.undo("c1", "-n", namespace, "delete", "pod", name, "--force", "--grace-period=0", "--ignore-not-found")
	}
	for _, namespace := range []string{w.ns, other} {
		if _, err := w.lab.Kubectl(t.Context(), "c1", []byte(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`), "-n", namespace, "apply", "-f", "-"); err != nil {
			t.Log(err)
		}
	}
	pod(w.ns, "web", "10.11.0.1", false)
	pod(other, "db", "10.11.0.53", false)
	pod(other, "agent", "192.0.2.11", true)
	export := `{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web}}`
	service := `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 80}]}}`
	for _, c := range []string{"c1", "c2"} {
		w.apply(c, service)
	}
	w.apply("c1", export)
	virtual := w.kubectl("c1", "-n", w.ns, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	w.apply("c1", fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, ports: [{name: http, port: 10250, protocol: TCP}],
endpoints: [{addresses: ["10.11.0.1"], nodeName: c1-node}, {addresses: ["192.0.2.11"], nodeName: c1-node, targetRef: {kind: Pod, name: web}},
{addresses: ["10.11.0.53"], nodeName: c1-node}, {addresses: ["10.11.0.53"]}, {addresses: ["10.12.9.9"], nodeName: c1-node}, {addresses: [%q]}]}`, virtual))
	derived := strings.Fields(w.derived("c2", "web"))[0]
	gets := func(addrs string) {
		t.Helper()
		w.slices("c2", "web of-c1 IPv4 "+addrs, derived+" of-c1 IPv4 "+addrs)
	}
	gets("10.11.0.1")
	w.says("c1", "status", "STR2325", "192.0.2.11 is an address of Node c1-node, and no Pod of namespace "+w.ns)

	pod(w.ns, "exporter", "192.0.2.11", true)
	gets("10.11.0.1 192.0.2.11")
	w.kubectl("c1", "-n", w.ns, "patch", "pod", "exporter", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Succeeded"}}`)
	gets("10.11.0.1")
}

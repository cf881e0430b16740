package object

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Nodes of OVN-Kubernetes whose pods' packets do not see the routes into the tunnels are reported,
// once for all of them, and only if there are tunnels.
func TestBypassed(t *testing.T) {
	machine := func(name, mode string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"k8s.ovn.org/l3-gateway-config": `{"default":{"mode":"` + mode + `"}}`}},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}},
		}
	}
	const shared = "warning: Node n1: metadata.annotations[k8s.ovn.org/l3-gateway-config]: OVN-Kubernetes is in gateway mode shared, on 2 Nodes in all: " +
		"packets of pods leave without seeing the node's routes, so pods reach no other cluster by tunnel; set routingViaHost: true in the gatewayConfig of OVN-Kubernetes, which is its gateway mode local"
	for _, c := range []struct {
		what     string
		modes    [3]string
		tunnels  bool
		problems []string
	}{
		{what: "through the host", modes: [3]string{"local", "local", "local"}, tunnels: true},
		{what: "no tunnels", modes: [3]string{"shared", "shared", "shared"}},
		{what: "two past the host", modes: [3]string{"shared", "local", "shared"}, tunnels: true, problems: []string{shared}},
	} {
		objs := typed{Config: Config{Tunnels: c.tunnels}}
		for i, name := range []string{"n3", "n2", "n1"} {
			objs.Nodes = append(objs.Nodes, machine(name, c.modes[i]))
		}
		check(t, c.what, objs.local(), c.problems...)
	}
}

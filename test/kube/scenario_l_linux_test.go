package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/pages"
)

// TestScenarioL is row C without strait's tunnels: pods' packets go by routes that the test makes, to
// each node, or through a gateway of each cluster, as Submariner's do. The commands are those of
// docs/from/submariner.md. At the end strait's tunnels take over, and the routes go.
func TestScenarioL(t *testing.T) {
	o := newOps(t)
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	blocks := pages.Of(all, pages.Submariner)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks to execute, want 3: Lighthouse off, without tunnels, with tunnels", len(blocks))
	}
	path := o.commands(t)
	o.switchesLighthouseOff(t, path, blocks[0])
	c1, c2 := clusterset(t)
	c2.pods(1)
	defer func() {
		must(t, o.script(t, path, blocks[2].Script()))
		testutil.Eventually(t, within, func() error { return c1.keepsAddress(1, c2) })
	}()
	must(t, o.script(t, path, blocks[1].Script()))
	for _, c := range o.Topology.Clusters {
		for _, n := range c.Nodes {
			testutil.Eventually(t, within, func() error { return o.tunnelless(t, n.Name) })
		}
	}
	if err := c1.keepsAddress(1, c2); err == nil {
		t.Error("pods reach the other cluster without tunnels and without routes: this test would see nothing")
	}
	for _, shape := range []struct {
		name   string
		routes func(*kubelab.Topology) []hop
	}{{"Routed", routed}, {"Gateways", gateways}} {
		t.Run(shape.name, func(t *testing.T) {
			o.carry(t, shape.routes(&o.Topology))
			passed := o.count(t, "c1n1", o.Topology.Clusters[0].Nodes[1].Pods.String())
			a, b := scenarioC(t)
			for node := range a.nodes() {
				must(t, a.keepsAddress(node+1, b))
				must(t, b.keepsAddress(node+1, a))
			}
			if n, want := passed(), shape.name == "Gateways"; n > 0 != want {
				t.Errorf("%d packets of the other node passed c1n1", n)
			}
		})
	}
}

// submariner is the object of Submariner's operator, with the fields that it must have and the one that the
// page sets, as in submariner-operator 393ed877 (config/crd/bases/submariner.io_submariners.yaml).
const submariner = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: submariners.submariner.io}
spec:
  group: submariner.io
  names: {kind: Submariner, listKind: SubmarinerList, plural: submariners, singular: submariner}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [broker, brokerK8sApiServer, brokerK8sRemoteNamespace, ceIPSecDebug, clusterCIDR, clusterID, debug, namespace, natEnabled, serviceCIDR]
            properties:
              broker: {type: string}
              brokerK8sApiServer: {type: string}
              brokerK8sRemoteNamespace: {type: string}
              ceIPSecDebug: {type: boolean}
              clusterCIDR: {type: string}
              clusterID: {type: string}
              debug: {type: boolean}
              namespace: {type: string}
              natEnabled: {type: boolean}
              serviceCIDR: {type: string}
              serviceDiscoveryEnabled: {type: boolean}
---
{apiVersion: v1, kind: Namespace, metadata: {name: submariner-operator}}
`

const submarinerOf = `{apiVersion: submariner.io/v1alpha1, kind: Submariner, metadata: {name: submariner, namespace: submariner-operator},
 spec: {broker: k8s, brokerK8sApiServer: broker.example:6443, brokerK8sRemoteNamespace: submariner-k8s-broker, ceIPSecDebug: false,
  clusterCIDR: "", clusterID: %s, debug: false, namespace: submariner-operator, natEnabled: false, serviceCIDR: "", serviceDiscoveryEnabled: true}}
`

// switchesLighthouseOff runs the block on API servers that have Submariner's object. Its operator does not
// run, so only the object changes.
func (o *ops) switchesLighthouseOff(t *testing.T, path string, b pages.Block) {
	t.Helper()
	for _, c := range o.Topology.Clusters {
		t.Cleanup(func() {
			if _, err := o.Kubectl(context.Background(), c.Name, nil, "delete", "--ignore-not-found", "crd/submariners.submariner.io", "namespace/submariner-operator"); err != nil {
				t.Error(err)
			}
		})
		must(t, o.Apply(t.Context(), c.Name, submariner))
		kubectl(t, c.Name, "wait", "--for=condition=Established", "crd/submariners.submariner.io")
		must(t, o.Apply(t.Context(), c.Name, fmt.Sprintf(submarinerOf, c.Name)))
	}
	must(t, o.script(t, path, b.Script()))
	for _, c := range o.Topology.Clusters {
		if got := kubectl(t, c.Name, "-n", "submariner-operator", "get", "submariner", "submariner", "-o", "jsonpath={.spec.serviceDiscoveryEnabled}"); got != "false" {
			t.Errorf("%s: after %s, serviceDiscoveryEnabled is %q", c.Name, b.Place(), got)
		}
	}
}

// hop is a route in one of the lab's network namespaces.
type hop struct{ ns, to, via string }

// routed leads to each node by the router between the clusters.
func routed(top *kubelab.Topology) (out []hop) {
	for _, c := range top.Clusters {
		for _, n := range c.Nodes {
			out = append(out, hop{"fabric", n.Pods.String(), n.Addr.String()})
		}
	}
	return out
}

// gateways leads through the first node of each cluster.
func gateways(top *kubelab.Topology) (out []hop) {
	for i, c := range top.Clusters {
		gateway := c.Nodes[0].Addr.String()
		out = append(out, hop{"fabric", podsOf(c), gateway})
		for _, n := range c.Nodes[1:] {
			out = append(out, hop{n.Name, podsOf(top.Clusters[1-i]), gateway})
		}
	}
	return out
}

// podsOf is the range of all pods of a cluster.
func podsOf(c kubelab.Cluster) string { return fmt.Sprintf("10.%d.0.0/16", 10+c.Index) }

// carry makes the routes, and lets pods keep their addresses on them, until the test ends.
func (o *ops) carry(t *testing.T, hops []hop) {
	t.Helper()
	for _, h := range hops {
		o.enter(t, h.ns, []string{"ip", "route", "add", h.to, "via", h.via}, []string{"ip", "route", "del", h.to, "via", h.via})
	}
	for i, c := range o.Topology.Clusters {
		rule := []string{"POSTROUTING", "-s", podsOf(c), "-d", podsOf(o.Topology.Clusters[1-i]), "-j", "ACCEPT"}
		for _, n := range c.Nodes {
			o.enter(t, n.Name, append([]string{"iptables", "-w", "-t", "nat", "-I"}, rule...), append([]string{"iptables", "-w", "-t", "nat", "-D"}, rule...))
		}
	}
}

// count counts the packets that a node forwards from pods of another node of its cluster to other
// clusters.
func (o *ops) count(t *testing.T, node, pods string) (packets func() int) {
	t.Helper()
	to := podsOf(o.Topology.Clusters[1])
	rule := []string{"FORWARD", "-s", pods, "-d", to}
	o.enter(t, node, append([]string{"iptables", "-w", "-I"}, rule...), append([]string{"iptables", "-w", "-D"}, rule...))
	return func() int {
		for line := range strings.Lines(run(t, "ip", "netns", "exec", o.Name+"-"+node, "iptables", "-w", "-nvxL", "FORWARD")) {
			if f := strings.Fields(line); slices.Contains(f, pods) && slices.Contains(f, to) {
				n, err := strconv.Atoi(f[0])
				must(t, err)
				return n
			}
		}
		t.Fatal("the rule that counts is gone")
		return 0
	}
}

// enter runs a command in a network namespace of the lab, and another one when the test ends.
func (o *ops) enter(t *testing.T, ns string, do, undo []string) {
	t.Helper()
	inside := []string{"ip", "netns", "exec", o.Name + "-" + ns}
	run(t, append(inside, do...)...)
	t.Cleanup(func() {
		argv := append(inside, undo...)
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
	})
}

// tunnelless checks that a node has neither strait's device nor a route of strait's.
func (o *ops) tunnelless(t *testing.T, node string) error {
	out, err := o.OnNode(t.Context(), node, "sh", "-c", "ip -o link show | grep -i strait; ip -4 route show table 5354 2>/dev/null; true")
	if err == nil && out != "" {
		err = errors.New(node + " still has\n" + out)
	}
	return err
}

// keepsAddress calls a pod of another cluster from the client on a node, and checks that the pod sees
// the client's own address.
func (m *member) keepsAddress(node int, other *member) error {
	m.t.Helper()
	pods, err := other.core.CoreV1().Pods(other.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: "app=hello"})
	must(m.t, err)
	client, err := m.core.CoreV1().Pods(clientsNamespace).Get(m.t.Context(), m.client(node), metav1.GetOptions{})
	must(m.t, err)
	seen, err := m.run(node, "curl -sS --fail --max-time 3 http://%s:8080/clientip", pods.Items[0].Status.PodIP)
	if err != nil {
		return err
	}
	from, _, _ := strings.Cut(strings.Join(seen, " "), ":")
	return m.wrap(equal("address that the pod sees", from, client.Status.PodIP))
}

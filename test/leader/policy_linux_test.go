package leader

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// cart is a Service of one endpoint, of any name.
func cart(name string) string {
	return strings.NewReplacer("NAME", name).Replace(`
apiVersion: v1
kind: Service
metadata: {name: NAME, labels: {app: NAME}, annotations: {owner: blue, other: x}}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: NAME-4, labels: {kubernetes.io/service-name: NAME}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.11.0.1], conditions: {ready: true}}]
`)
}

// policy gives both clusters a policy, which goes with the test.
func (w *world) policy(name, spec string) {
	w.Helper()
	for _, c := range []string{"c1", "c2"} {
		w.apply(c, fmt.Sprintf("apiVersion: strait.io/v1alpha1\nkind: ServicePolicy\nmetadata: {name: %s}\nspec: {from: [of-c1], to: [of-c2], %s}\n", name, spec))
	}
}

func (w *world) forget(name string) {
	for _, c := range []string{"c1", "c2"} {
		if _, err := w.lab.Kubectl(context.Background(), c, nil, "delete", "servicepolicy", name, "--ignore-not-found"); err != nil {
			w.Errorf("undo: %v", err)
		}
	}
}

// elsewhere makes a namespace that only c1 has, with Services. The one that strait makes in c2 goes too.
func (w *world) elsewhere(services ...string) (namespace string) {
	w.Helper()
	namespace = w.ns + "-made"
	w.namespace("c1", namespace)
	w.undo("c2", "delete", "namespace", namespace, "--ignore-not-found", "--timeout=60s")
	for _, s := range services {
		_, err := w.lab.Kubectl(w.Context(), "c1", []byte(cart(s)), "-n", namespace, "apply", "-f", "-")
		w.must(err)
	}
	return namespace
}

// strait returns what the CLI prints on a cluster's node.
func (w *world) strait(cluster string, args ...string) string {
	args = append(args, "--ascii", "--socket", filepath.Join(w.dir, cluster, "run", "strait.sock"))
	out, err := exec.CommandContext(w.Context(), w.bin("strait"), args...).CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}

// says waits until the CLI prints all of some texts.
func (w *world) says(cluster, args string, texts ...string) {
	w.Helper()
	testutil.Eventually(w, within, func() error {
		out := w.strait(cluster, strings.Fields(args)...)
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return fmt.Errorf("strait %s in %s: there is no %q in\n%s", args, cluster, text, out)
			}
		}
		return nil
	})
}

const policyStatus = "{.status.mirrored} {.status.imported} {.status.skipped[*].reason} {.status.conditions[0].reason}"

// TestPolicyMakesMirrors: with the rights that the chart gives and no more, the leader creates the namespace
// of a mirror, copies annotations, and leaves a Service of the same name alone. What the API server refuses is
// in the status. After a change of the template, the old mirror goes. The namespace stays for good.
func TestPolicyMakesMirrors(t *testing.T) {
	w := newWorld(t, nil)
	made := w.elsewhere("cart")
	w.apply("c1", cart("taken"))
	w.apply("c2", cart("taken"))
	const p = "leader-mirrors"
	defer w.forget(p)
	spec := fmt.Sprintf("as: mirror, createNamespace: true, copy: {annotations: [owner]}, select: [{namespaces: [%s, %s]}]", made, w.ns)
	w.policy(p, "exposeAs: NodePort, "+spec)
	w.becomes("c2", "servicepolicy/"+p, policyStatus, "0 0 Refused Refused SomeSkipped")
	w.until("c2", "strait", "get", "namespace", made, "-o", `jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by}`)

	w.policy(p, "exposeAs: ClusterIP, "+spec)
	w.becomes("c2", "servicepolicy/"+p, policyStatus, "1 0 TargetExists SomeSkipped")
	const annotations = `jsonpath={.spec.type} {.metadata.annotations.owner} {.metadata.annotations.other}`
	w.until("c2", "ClusterIP blue", "-n", made, "get", "service", "cart", "-o", annotations)
	ofMirrors := func(ns, want string) {
		w.Helper()
		w.until("c2", want, "-n", ns, "get", "endpointslices", "-l", "strait.io/policy-set=daemon", "-o",
			`jsonpath={range .items[*]}{.metadata.labels.kubernetes\.io/service-name} {.endpoints[*].addresses[*]}{end}`)
	}
	ofMirrors(made, "cart 10.11.0.1")
	ofMirrors(w.ns, "") // what is taken gets no endpoints
	w.says("c1", "policy "+p, "cluster of-c2 has made 1 by it", "of-c1/"+w.ns+"/taken is left out of cluster of-c2: TargetExists")
	w.says("c2", "policy "+p, "of-c1/"+w.ns+"/taken is left out: TargetExists")
	w.says("c2", "explain "+made+"/cart", "is a mirror of of-c1/"+made+"/cart by policy "+p)

	w.policy(p, `name: "far-{name}", `+spec)
	w.until("c2", "service/far-cart\nservice/far-taken", "get", "services", "-A", "-l", "strait.io/policy="+p, "-o", "name", "--sort-by={.metadata.name}")
	w.becomes("c2", "servicepolicy/"+p, policyStatus, "2 0  InForce")

	w.forget(p)
	w.until("c2", "", "get", "services", "-A", "-l", "strait.io/policy="+p, "-o", "name")
	ofMirrors(made, "")
	w.until("c2", "Active", "get", "namespace", made, "-o", "jsonpath={.status.phase}")
}

// TestPolicyImports: a policy that imports counts what is imported, and creates namespaces if it says so.
func TestPolicyImports(t *testing.T) {
	w := newWorld(t, nil)
	made := w.elsewhere("cart", "pay")
	const p = "leader-imports"
	defer w.forget(p)
	spec := fmt.Sprintf("as: import, copy: {annotations: [owner]}, select: [{namespaces: [%s]}]", made)
	w.policy(p, spec)
	w.becomes("c2", "servicepolicy/"+p, policyStatus, "0 0 NamespaceMissing NamespaceMissing SomeSkipped")
	w.policy(p, "createNamespace: true, "+spec)
	w.becomes("c2", "servicepolicy/"+p, policyStatus, "0 2  InForce")
	w.until("c2", "blue", "-n", made, "get", "serviceimport", "cart", "-o", "jsonpath={.metadata.annotations.owner}{.metadata.annotations.other}")
}

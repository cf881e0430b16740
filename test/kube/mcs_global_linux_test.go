package kube

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// A headless global Service resolves to the pods of all clusters that share theirs, by its own
// name, as in Cilium. A StatefulSet's pod keeps its name in its own cluster; one that it does not
// have is another's.
func TestHeadlessGlobalService(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	local := func(host string) string { return host + "hello." + c1.ns + ".svc.cluster.local" }
	for _, m := range []*member{c1, c2} {
		m.serve(service(headless, annotated(yes("service.cilium.io/global"))))
		_, err := m.lab.Kubectl(t.Context(), m.name, []byte(stateful), "-n", m.ns, "apply", "-f", "-")
		must(t, err)
	}
	pods := map[*member][2]string{c1: c1.stateful(), c2: c2.stateful()}
	_, err := c1.lab.Kubectl(t.Context(), "c1", nil, "-n", c1.ns, "scale", "statefulset/hello", "--replicas=1")
	must(t, err)
	all := func() []string { return []string{pods[c1][0], pods[c2][0], pods[c2][1]} }
	for _, m := range []*member{c1, c2} {
		m.resolves(local(""), "A", all()...)
		m.resolves(local("hello-0."), "A", pods[m][0])
		m.resolves(local("hello-1."), "A", pods[c2][1])
	}
	if got := c1.calls(1, 1, local("hello-1.")+":42"); fmt.Sprint(got) != "[hello-1]" {
		t.Errorf("hello-1 answers %q", got)
	}
	c1.annotate("service.cilium.io/global-sync-endpoint-slices=false")
	c1.resolves(local(""), "A", pods[c1][0])
	c2.resolves(local(""), "A", all()...)
	c1.annotate("service.cilium.io/global-sync-endpoint-slices=true")
	c1.resolves(local(""), "A", all()...)
	c2.annotate("service.cilium.io/shared=false")
	c1.resolves(local(""), "A", pods[c1][0])
}

const optedOut = `
apiVersion: v1
kind: Pod
metadata: {name: opted-out, annotations: {strait.io/opt-out: "true"}}
spec:
  nodeName: c1n2
  terminationGracePeriodSeconds: 0
  containers:
  - {name: shell, image: localhost/shell:1, command: [sleep, infinity]}
`

// With EndpointSlices, a global Service's ClusterIP also leads to other clusters' pods for a client
// that strait does not serve: it has opted out, and kube-proxy answers.
func TestGlobalServiceSlices(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	own := c1.serve(service(withTargets, annotated(yes("service.cilium.io/global"))))
	c2.serve(service(withTargets, annotated(yes("service.cilium.io/global"))))
	c1.pods(1)
	c2.pods(1)
	_, err := c1.lab.Kubectl(t.Context(), "c1", []byte(optedOut), "-n", c1.ns, "apply", "-f", "-")
	must(t, err)
	client := client(func(script string, args ...any) ([]string, error) {
		out, err := c1.lab.InCluster(t.Context(), "c1", kubelab.Container{Namespace: c1.ns, Pod: "opted-out"}, "sh", "-c", fmt.Sprintf(script, args...))
		return strings.Fields(out), err
	})
	spreads := func(clusters ...string) {
		t.Helper()
		testutil.Eventually(t, 2*within, func() error {
			got, err := client.calls(24, own.Spec.ClusterIP+":42")
			if err != nil {
				return err
			}
			return answeredBy(got, clusters...)
		})
	}
	spreads("c1")
	c1.spreads(own, "c1", "c2")
	c1.annotate("service.cilium.io/global-sync-endpoint-slices=true")
	spreads("c1", "c2")
	c2.annotate("service.cilium.io/shared=false")
	spreads("c1")
}

// Cilium's annotation of a Namespace keeps other clusters' Services out, too, and takes back what
// was imported.
func TestLocalNamespaceImportsNothing(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	mark := func(value string) {
		_, err := c2.lab.Kubectl(t.Context(), "c2", nil, "annotate", "--overwrite", "namespace/"+c2.ns, "clustermesh.cilium.io/global="+value)
		must(t, err)
	}
	c1.serve(service())
	c1.export("hello")
	c2.imported("hello")
	mark("false")
	c2.gone("hello")
	remains(t, func() error { return c2.absent("hello") })
	c1.imported("hello")
	mark("true")
	c2.imported("hello", from("c1"))
}

package kube

import (
	"testing"

	"strait.io/strait/internal/testutil"
)

// both has pods of the Service hello in both clusters, and exports it from both.
func both(t *testing.T, annotations map[string]string) (c1, c2 *member) {
	t.Helper()
	c1, c2 = clusterset(t)
	for _, m := range []*member{c1, c2} {
		m.serve(service(withTargets, annotated(annotations)))
		m.pods(1)
		m.export("hello")
	}
	return c1, c2
}

// TestScenarioC is KEP-1645: exports of one name are one import with one address and name in each cluster, which answers
// from the nearest exporter, and goes with the last export. The tests of the same folder have conflicts and the union of
// ports.
func TestScenarioC(t *testing.T) {
	t.Parallel()
	scenarioC(t)
}

// scenarioC is row C, over whatever network there is. It returns the clusters, with the pods still
// there.
func scenarioC(t *testing.T) (c1, c2 *member) {
	c1, c2 = both(t, nil)
	for _, m := range []*member{c1, c2} {
		ip := m.imported("hello", from("c1", "c2")).Spec.IPs[0]
		m.resolves(m.fqdn("hello"), "A", ip)
		m.answered(m.fqdn("hello")+":42", m.name)
	}
	c1.pods(0)
	c1.answered(c1.fqdn("hello")+":42", "c2")
	c1.pods(1)
	c1.answered(c1.fqdn("hello")+":42", "c1")
	c1.unexport("hello")
	c2.imported("hello", from("c2"))
	c1.answered(c1.fqdn("hello")+":42", "c2")
	c2.unexport("hello")
	for _, m := range []*member{c1, c2} {
		m.gone("hello")
		m.resolves(m.fqdn("hello"), "A")
	}
	return c1, c2
}

// TestScenarioH is Cilium's Multi-Cluster Services: the name answers from both clusters alike, CoreDNS needs no more than
// its own plugin, gateways find the derived Service, and no name leads to one cluster's pods.
func TestScenarioH(t *testing.T) {
	t.Parallel()
	c1, c2 := both(t, map[string]string{"service.strait.io/locality": "clusterset"})
	for _, m := range []*member{c1, c2} {
		i := m.imported("hello", from("c1", "c2"))
		must(t, m.wrap(equal("annotation", i.Annotations["multicluster.kubernetes.io/derived-service"], "derived-hello")))
		m.resolves("c1."+m.fqdn("hello"), "A")
	}
	c1.answered(c1.fqdn("hello")+":42", "c1", "c2")
	c2.answered(c2.fqdn("hello")+":42", "c1", "c2")
	c2.pods(0)
	c2.answered(c2.fqdn("hello")+":42", "c1")
}

// answered waits until calls of an address are answered by just these clusters.
func (m *member) answered(address string, clusters ...string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		return m.wrap(answeredBy(m.calls(1, 24, address), clusters...))
	})
}

package kube

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// TestScenarioJ is Karmada's MultiClusterService, with its own names of the fields: whose pods answer
// at each cluster's own ClusterIP, for all combinations of Karmada's list, which are changed live in
// the same object.
func TestScenarioJ(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	for _, m := range []*member{c1, c2} {
		_, err := m.lab.Kubectl(t.Context(), m.name, nil, "apply", "-f", filepath.Join("testdata", "multiclusterservice-crd.yaml"))
		must(t, err)
		m.established("multiclusterservices.networking.karmada.io")
	}
	// Every endpoint counts alike, so that all who may answer do.
	none := map[string]string{"service.strait.io/affinity": "none"}
	ip1, ip2 := c1.serve(service(withTargets, annotated(none))), c2.serve(service(withTargets, annotated(none)))
	c1.pods(1)
	c2.pods(1)
	for i, cell := range []struct {
		providers, consumers []string
		at1, at2             []string
	}{
		{[]string{"c1"}, []string{"c2"}, []string{"c1"}, []string{"c1", "c2"}},
		{[]string{"c1"}, []string{"c1", "c2"}, []string{"c1"}, []string{"c1", "c2"}},
		{[]string{"c1", "c2"}, []string{"c1"}, []string{"c1", "c2"}, []string{"c2"}},
		{[]string{"c1", "c2"}, []string{"c2"}, []string{"c1"}, []string{"c1", "c2"}},
		{[]string{"c1", "c2"}, []string{"c1", "c2"}, []string{"c1", "c2"}, []string{"c1", "c2"}},
		{nil, nil, []string{"c1", "c2"}, []string{"c1", "c2"}},
		{[]string{"c1"}, []string{"c2"}, []string{"c1"}, []string{"c1", "c2"}},
	} {
		text := multiClusterService(cell.providers, cell.consumers)
		for _, m := range []*member{c1, c2} {
			_, err := m.lab.Kubectl(t.Context(), m.name, []byte(text), "-n", m.ns, "apply", "-f", "-")
			must(t, err)
		}
		if i == 0 {
			testutil.Eventually(t, asked, func() error { return c2.wrap(answeredBy(c2.calls(1, 24, ip2.Spec.ClusterIP+":42"), "c1", "c2")) })
		}
		c1.spreads(ip1, cell.at1...)
		c2.spreads(ip2, cell.at2...)
		t.Logf("from %v to %v: c1 reaches %v, c2 %v", cell.providers, cell.consumers, cell.at1, cell.at2)
	}
	c2.pods(0)
	c2.spreads(ip2, "c1")
	for _, m := range []*member{c1, c2} {
		_, err := m.lab.Kubectl(t.Context(), m.name, nil, "-n", m.ns, "delete", "multiclusterservice", "hello")
		must(t, err)
	}
	c2.pods(1)
	c2.spreads(ip2, "c2")
}

func multiClusterService(providers, consumers []string) string {
	list := func(field string, clusters []string) string {
		if clusters == nil {
			return ""
		}
		return fmt.Sprintf("  %s: [{name: %s}]\n", field, strings.Join(clusters, "}, {name: "))
	}
	return "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {name: hello}\nspec:\n  types: [CrossCluster]\n" +
		list("providerClusters", providers) + list("consumerClusters", consumers)
}

// TestServicePolicy: one document in both clusters shares what it selects, only where it says; it
// goes, and with it what it shared.
func TestServicePolicy(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	for _, m := range []*member{c1, c2} {
		for _, name := range []string{"hello", "other"} {
			if m.name == "c1" || name == "other" {
				m.serve(service(withTargets, named(name)))
			}
		}
	}
	c1.pods(1)
	name := c1.ns[len("testservicepolicy-"):] + "-p"
	text := fmt.Sprintf(`apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: p%s}
spec:
  from: [c1]
  to: [c2]
  select: [{namespaces: [%s], names: ["hel.*"], labels: {matchLabels: {dummy-svc: dummy}}}]
`, name, c1.ns)
	for _, m := range []*member{c1, c2} {
		must(t, m.lab.Apply(t.Context(), m.name, text))
		t.Cleanup(func() {
			if _, err := m.lab.Kubectl(context.Background(), m.name, nil, "delete", "servicepolicy", "p"+name, "--ignore-not-found"); err != nil {
				t.Error(err)
			}
		})
	}
	c2.imported("hello", from("c1"))
	c2.answered(c2.fqdn("hello")+":42", "c1")
	must(t, c1.absent("hello"))
	must(t, c2.absent("other"))
	c1.policyShown("p"+name, "import 1 1 True")
	version := func() string {
		return kubectl(t, "c1", "get", "servicepolicy", "p"+name, "-o", "jsonpath={.metadata.resourceVersion}")
	}
	before := version()
	c2.policyShown("p"+name, "import 0 0 True")
	must(t, equal("version of a policy whose status is written", version(), before))
	kubectl(t, "c1", "patch", "servicepolicy", "p"+name, "--type=merge", "-p", `{"spec":{"select":[{"namespaces":["`+c1.ns+`"]}]}}`)
	c1.policyShown("p"+name, "import 2 2 True")
	// The category, and the columns that only -o wide has.
	wide := lines(kubectl(t, "c1", "get", "strait", "-o", "wide"))
	must(t, equal("columns", strings.Join(strings.Fields(wide[0]), " "), "NAME AS SELECTED SHARED READY AGE FROM TO MIRRORED IMPORTED JOINED REASON MESSAGE"))
	for _, line := range wide {
		if words := strings.Fields(line); words[0] == "p"+name || words[0] == "servicepolicy.strait.io/p"+name {
			must(t, equal("the policy with -o wide", strings.Join(words[6:], " "), `["c1"] ["c2"] 0 0 0 InForce`))
			wide = nil
		}
	}
	if wide != nil {
		t.Errorf("kubectl get strait does not list %s: %q", "p"+name, wide)
	}
	// Of a pattern that is none, the API server knows nothing, and the status has its path.
	kubectl(t, "c1", "patch", "servicepolicy", "p"+name, "--type=merge", "-p", `{"spec":{"select":[{"names":["("]}],"copy":{"labels":["["]}}}`)
	c1.policyShown("p"+name, "import 0 0 False")
	ready := kubectl(t, "c1", "get", "servicepolicy", "p"+name, "-o", "jsonpath={.status.conditions[0]}")
	for _, want := range []string{`"Invalid"`, "spec.select[0].names[0]: Invalid value", "; spec.copy.labels[0]: Invalid value"} {
		if !strings.Contains(ready, want) {
			t.Errorf("%s does not say %q", ready, want)
		}
	}
	for _, m := range []*member{c1, c2} {
		kubectl(t, m.name, "delete", "servicepolicy", "p"+name)
	}
	c2.gone("hello")

	// The API server refuses what the daemon would.
	for _, bad := range []string{
		strings.Replace(text, `namespaces: [`+c1.ns+`], names: ["hel.*"], labels: {matchLabels: {dummy-svc: dummy}}`, "", 1),
		strings.Replace(text, "  to: [c2]\n", "  to: []\n", 1),
		strings.Replace(text, "  to: [c2]\n", "  to: [C2]\n", 1),
		text + "  as: join\n  name: other\n",
		text + "  namespace: elsewhere\n",
	} {
		if err := c1.lab.Apply(t.Context(), "c1", bad); err == nil {
			t.Errorf("the API server takes\n%s", bad)
		}
	}
}

// policyShown waits for what kubectl shows of a policy between its name and its age.
func (m *member) policyShown(name, want string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		out, err := m.lab.Kubectl(m.t.Context(), m.name, nil, "get", "servicepolicy", name, "--no-headers")
		if err != nil {
			return err
		}
		words := strings.Fields(out)
		return m.wrap(equal("columns", strings.Join(words[1:len(words)-1], " "), want))
	})
}

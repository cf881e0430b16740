package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/pages"
)

// seen is what a mesh or a policy engine learns of an address from EndpointSlices alone.
type seen struct{ cluster, zone, node, hint string }

// What follows are the selectors of those who read slices.
const (
	// Envoy Gateway, CoreDNS: the slices of the MCS API.
	byImport = "multicluster.kubernetes.io/service-name=hello"
	// Istio, kube-proxy, gateways that know Services: those of a Service, never those of the MCS API.
	byService = "!multicluster.kubernetes.io/service-name,kubernetes.io/service-name="
)

// TestScenarioM is a neighbour that reads EndpointSlices: by its own rules it finds each pod of both
// clusters, and in which cluster and zone the pod is. Nodes are named to their own cluster only,
// because two clusters may have nodes of one name.
func TestScenarioM(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	close := func(s *corev1.Service) {
		s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
	}
	all := annotated(map[string]string{"service.strait.io/locality": "clusterset"})
	for _, m := range []*member{c1, c2} {
		m.serve(service(withTargets, all, close))
		m.pods(2)
		m.export("hello")
	}
	c1.serve(service(withTargets, named("mirrored")))
	c1.mirrors("mirrored", c2)
	for _, m := range []*member{c1, c2} {
		m.imported("hello", from("c1", "c2"))
		want := map[string]seen{}
		for _, of := range []*member{c1, c2} {
			maps.Copy(want, of.placed(of == m))
		}
		m.sees(byImport, want)
		for addr, s := range want {
			s.hint = s.zone
			want[addr] = s
		}
		m.sees(byService+"derived-hello", want)
		// A policy engine asks for one cluster's addresses.
		other := map[string]seen{}
		for addr, s := range want {
			if s.cluster != m.name {
				other[addr] = s
			}
		}
		m.sees(byService+"derived-hello,multicluster.kubernetes.io/source-cluster="+others[m.name], other)
		must(t, m.labelled())
	}
	c2.sees(byService+"mirrored", c1.placed(false))
	c1.istioPage(t)
}

var others = map[string]string{"c1": "c2", "c2": "c1"}

// placed is what others are to see of the cluster's pods, by address.
func (m *member) placed(nodes bool) map[string]seen {
	m.t.Helper()
	pods, err := m.core.CoreV1().Pods(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: "app=hello"})
	must(m.t, err)
	out := map[string]seen{}
	for _, p := range pods.Items {
		n, err := m.core.CoreV1().Nodes().Get(m.t.Context(), p.Spec.NodeName, metav1.GetOptions{})
		must(m.t, err)
		s := seen{cluster: m.name, zone: n.Labels[corev1.LabelTopologyZone]}
		if nodes {
			s.node = n.Name
		}
		if s.zone == "" || p.Status.PodIP == "" {
			m.t.Fatalf("pod %s at %q on %s in zone %q", p.Name, p.Status.PodIP, n.Name, s.zone)
		}
		out[p.Status.PodIP] = s
	}
	return out
}

// sees waits until the slices that a selector selects show these endpoints, all of them ready.
func (m *member) sees(selector string, want map[string]seen) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		list, err := m.core.DiscoveryV1().EndpointSlices(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		have := map[string]seen{}
		for _, s := range list.Items {
			for _, e := range s.Endpoints {
				have[e.Addresses[0]] = told(s, e)
			}
		}
		return m.wrap(equal(selector, have, want))
	})
}

// told reads an endpoint. One that is not ready is in no zone, which no test wants.
func told(s discoveryv1.EndpointSlice, e discoveryv1.Endpoint) seen {
	out := seen{cluster: s.Labels["multicluster.kubernetes.io/source-cluster"]}
	if e.Conditions.Ready == nil || !*e.Conditions.Ready {
		return out
	}
	if e.Zone != nil {
		out.zone = *e.Zone
	}
	if e.NodeName != nil {
		out.node = *e.NodeName
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			out.hint += z.Name
		}
	}
	return out
}

// labelled checks that each slice that strait wrote here names its cluster.
func (m *member) labelled() error {
	list, err := m.core.DiscoveryV1().EndpointSlices(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelManagedBy + "=strait.io"})
	if err != nil {
		return err
	}
	for _, s := range list.Items {
		if s.Labels["multicluster.kubernetes.io/source-cluster"] == "" {
			err = cmp.Or(err, m.wrap(fmt.Errorf("slice %s names no cluster: %v", s.Name, s.Labels)))
		}
	}
	return err
}

// mirrors makes a policy in both clusters, by which the other has a Service of the plain name.
func (m *member) mirrors(name string, to *member) {
	m.t.Helper()
	policy := "mirrors-" + m.ns
	text := fmt.Sprintf(`apiVersion: strait.io/v1alpha1
kind: ServicePolicy
metadata: {name: %s}
spec: {from: [%s], to: [%s], as: mirror, select: [{namespaces: [%s], names: [%s]}]}
`, policy, m.name, to.name, m.ns, name)
	for _, c := range []*member{m, to} {
		must(m.t, c.lab.Apply(m.t.Context(), c.name, text))
		m.t.Cleanup(func() {
			if _, err := c.lab.Kubectl(context.Background(), c.name, nil, "delete", "servicepolicy", policy, "--ignore-not-found"); err != nil {
				m.t.Error(err)
			}
		})
	}
}

// istioPage runs the commands of docs/from/istio.md, for the namespace of the test.
func (m *member) istioPage(t *testing.T) {
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	o := &ops{Lab: m.lab}
	path := o.commands(t)
	blocks := pages.Of(all, pages.Istio)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks to execute, want 1", len(blocks))
	}
	for _, b := range blocks {
		must(t, o.script(t, path, "export NAMESPACE="+m.ns+"\n"+b.Script()))
	}
}

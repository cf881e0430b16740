package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// A Service of c1 alone answers in both clusters, from both nodes of each: TCP and UDP, by address
// and by name.
func TestTrafficByAddressAndName(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service(withTargets))
	c1.pods(1)
	// 14 of the suite: not exported, no pod is reached.
	if got, ok := c2.lookup("hello", "A"); ok {
		t.Errorf("not exported, and resolves as %q", got)
	}
	c1.export("hello")
	for _, m := range []*member{c1, c2} {
		ip := m.imported("hello").Spec.IPs[0]
		for n := range m.nodes() {
			m.answers(n+1, ip+":42", "c1")
		}
		m.answers(1, m.fqdn("hello")+":42", "c1")
		testutil.Eventually(t, within, func() error { return m.wrap(answeredBy(m.udpCalls(1, 2, ip, "42"), "c1")) })
		testutil.Eventually(t, within, func() error { return m.wrap(answeredBy(m.udpCalls(1, 2, m.fqdn("hello"), "42"), "c1")) })
	}
}

// nodes are the cluster's.
func (m *member) nodes() []string {
	c, err := m.lab.Cluster(m.name)
	must(m.t, err)
	var out []string
	for _, n := range c.Nodes {
		out = append(out, n.Name)
	}
	return out
}

// 25 of the suite, E4: pods of a cluster that does not export are not reached, not even by its own clients.
func TestTrafficReachesExportersOnly(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	for _, m := range []*member{c1, c2} {
		m.serve(service(withTargets))
		m.pods(1)
	}
	c1.export("hello")
	for _, m := range []*member{c1, c2} {
		m.answers(1, m.imported("hello").Spec.IPs[0]+":42", "c1")
		if err := answeredBy(m.calls(1, 10, m.fqdn("hello")+":42"), "c1"); err != nil {
			t.Error(m.wrap(err))
		}
	}
}

// 26 and 27 of the suite: a port leads only to clusters whose own Service has that name, protocol and number.
func TestTrafficStrictPortConflict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, port string
		other      bool // whether 4242 is a port of the import
	}{{"same-name", "tcp", false}, {"other-name", "tcp2", true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c1, c2 := clusterset(t)
			c1.serve(service(withTargets, affine(10)))
			c2.serve(service(ports(corev1.ServicePort{Name: tc.port, Port: 4242}), withTargets, affine(10)))
			for _, m := range []*member{c1, c2} {
				m.pods(1)
				m.export("hello")
			}
			for _, m := range []*member{c1, c2} {
				m.exportHas("hello", "Conflict", "True", "PortConflict")
				ip := m.imported("hello", from("c1", "c2")).Spec.IPs[0]
				m.answers(1, ip+":42", "c1")
				if err := answeredBy(m.calls(1, 10, ip+":42"), "c1"); err != nil {
					t.Error(m.wrap(err))
				}
				if tc.other {
					m.answers(1, ip+":4242", "c2")
				}
			}
		})
	}
}

// A cluster's own pods are preferred; without any, the other cluster's answer, until they are back.
func TestTrafficFailsOver(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	for _, m := range []*member{c1, c2} {
		m.serve(service(withTargets))
		m.pods(1)
		m.export("hello")
	}
	address := c1.imported("hello", from("c1", "c2")).Spec.IPs[0] + ":42"
	c1.answers(1, address, "c1")
	c1.scale(0)
	c1.answers(1, address, "c2")
	c1.scale(1)
	c1.answers(1, address, "c1")
}

func (m *member) scale(replicas int32) {
	m.t.Helper()
	_, err := m.lab.Kubectl(m.t.Context(), m.name, nil, "-n", m.ns, "scale", "deployment/hello-"+m.name, fmt.Sprintf("--replicas=%d", replicas))
	must(m.t, err)
	m.podsReady(replicas)
}

// Session affinity has an effect: one client stays with one pod, of another cluster too; without
// it, it does not.
func TestTrafficSessionAffinity(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service(withTargets, affine(60)))
	c1.serve(service(withTargets, named("free")))
	c1.pods(2)
	for _, name := range []string{"hello", "free"} {
		c1.export(name)
	}
	for name, want := range map[string]bool{"hello": true, "free": false} {
		address := c2.imported(name).Spec.IPs[0] + ":42"
		testutil.Eventually(t, within, func() error {
			got := c2.calls(1, 20, address)
			if err := answeredBy(got, "c1"); err != nil {
				return err
			}
			if one := len(slices.Compact(slices.Sorted(slices.Values(got)))) == 1; one != want {
				return fmt.Errorf("%s: answers %q: always of one pod is %v, want %v", name, got, one, want)
			}
			return nil
		})
	}
}

// TestScenarioG is Cilium's global services, with its names: c1's client reaches c2's pods by its
// own ClusterIP only if its own Service is global and c2's is global and shared. Annotations are
// followed as they change, and so are pods.
func TestScenarioG(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		own, theirs  map[string]string
		want         []string
		ownReplicas  int32
		theirClients []string
	}{
		{"both", yes("service.cilium.io/global"), yes("service.cilium.io/global"), []string{"c1", "c2"}, 1, nil},
		{"legacy-names", yes("io.cilium/global-service"), yes("io.cilium/global-service"), []string{"c1", "c2"}, 1, nil},
		{"own-only", yes("service.cilium.io/global"), nil, []string{"c1"}, 1, nil},
		{"theirs-only", nil, yes("service.cilium.io/global"), []string{"c1"}, 1, nil},
		{"not-shared", yes("service.cilium.io/global"), map[string]string{"service.cilium.io/global": "true", "service.cilium.io/shared": "false"}, []string{"c1"}, 1, []string{"c1", "c2"}},
		{"local-first", map[string]string{"service.cilium.io/global": "true", "service.cilium.io/affinity": "local"}, yes("service.cilium.io/global"), []string{"c1"}, 1, nil},
		{"remote-first", map[string]string{"service.cilium.io/global": "true", "io.cilium/service-affinity": "remote"}, yes("service.cilium.io/global"), []string{"c2"}, 1, nil},
		{"strait-own-name", yes("service.strait.io/global"), yes("service.strait.io/global"), []string{"c2"}, 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c1, c2 := clusterset(t)
			own := c1.serve(service(withTargets, annotated(tc.own)))
			theirs := c2.serve(service(withTargets, annotated(tc.theirs)))
			c1.pods(tc.ownReplicas)
			c2.pods(1)
			c1.spreads(own, tc.want...)
			if tc.theirClients != nil {
				c2.spreads(theirs, tc.theirClients...)
			}
			remains(t, func() error { return c1.absent("hello") })
			switch tc.name {
			case "both":
				c1.annotate("service.cilium.io/shared=false")
				c2.spreads(theirs, "c2")
				c1.spreads(own, "c1", "c2")
			case "local-first":
				c1.pods(0)
				c1.spreads(own, "c2")
			}
		})
	}
}

// annotate sets an annotation of the Service hello.
func (m *member) annotate(annotation string) {
	m.t.Helper()
	_, err := m.lab.Kubectl(m.t.Context(), m.name, nil, "-n", m.ns, "annotate", "--overwrite", "service/hello", annotation)
	must(m.t, err)
}

// spreads waits until the calls of a Service's ClusterIP are answered by just these clusters.
func (m *member) spreads(s *corev1.Service, clusters ...string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		return m.wrap(answeredBy(m.calls(1, 24, s.Spec.ClusterIP+":42"), clusters...))
	})
}

func yes(key string) map[string]string { return map[string]string{key: "true"} }

func annotated(a map[string]string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Annotations = a }
}

// A value that says nothing is a problem that names the Service; the Service is global all the same.
func TestGlobalServiceContradicts(t *testing.T) {
	t.Parallel()
	c1, _ := clusterset(t)
	c1.serve(service(annotated(map[string]string{"service.cilium.io/global": "true", "service.cilium.io/affinity": "sometimes"})))
	testutil.Eventually(t, within, func() error {
		out, err := c1.lab.InCluster(t.Context(), "c1", kubelab.DaemonContainer, "/strait", "status", "-o", "json")
		if out == "" {
			return err // it also ends with 1 where there are problems
		}
		if !strings.Contains(out, "sometimes") || !strings.Contains(out, c1.ns+"/hello") {
			return fmt.Errorf("no problem names the value and the Service: %s", out)
		}
		return nil
	})
}

package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/internal/testutil"
)

// endpoints makes an EndpointSlice of a selectorless Service by hand, as people do who run
// something outside of Kubernetes. The addresses are in the pinned ranges of pods, and no Pod's.
func (m *member) endpoints(service string, addresses ...string) {
	m.t.Helper()
	name, tcp, port := "tcp", corev1.ProtocolTCP, int32(8080)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service + "-by-hand", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Protocol: &tcp, Port: &port}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	_, err := m.core.DiscoveryV1().EndpointSlices(m.ns).Create(m.t.Context(), s, metav1.CreateOptions{})
	must(m.t, err)
}

func selectorless(s *corev1.Service) {
	s.Spec.Selector = nil
	s.Spec.Ports = s.Spec.Ports[:1]
}

// hasSlices waits until the import's slices list these addresses, by cluster.
func (m *member) hasSlices(name string, want map[string][]string) (out []discoveryv1.EndpointSlice) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		var err error
		if out, err = m.importSlices(name); err != nil {
			return err
		}
		have := map[string][]string{}
		for _, s := range out {
			from := s.Labels[mcsv1beta1.LabelSourceCluster]
			for _, e := range s.Endpoints {
				have[from] = append(have[from], e.Addresses...)
			}
			slices.Sort(have[from])
		}
		if !maps.EqualFunc(have, want, slices.Equal) {
			return m.wrap(fmt.Errorf("endpoints of %s: %v, want %v", name, have, want))
		}
		return nil
	})
	return out
}

// §2.5: in every cluster, each slice of one source cluster, marked as the API says and never as a
// Service's own.
func TestImportSlices(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	for _, m := range []*member{c1, c2} {
		m.serve(service(selectorless))
		m.export("hello")
	}
	c1.endpoints("hello", "10.11.250.1", "10.11.250.2")
	c2.endpoints("hello", "10.12.250.1")
	want := map[string][]string{"c1": {"10.11.250.1", "10.11.250.2"}, "c2": {"10.12.250.1"}}
	for _, m := range []*member{c1, c2} {
		for _, s := range m.hasSlices("hello", want) {
			must(t, cmp.Or(
				equal("managed-by", s.Labels[discoveryv1.LabelManagedBy], "strait.io"),
				equal("owner", s.OwnerReferences[0].Kind, "ServiceImport"),
				equal("service-name", s.Labels[discoveryv1.LabelServiceName], ""),
			))
		}
	}
	// E8: the slices of a cluster go with its export, the others stay.
	c2.unexport("hello")
	for _, m := range []*member{c1, c2} {
		m.hasSlices("hello", map[string][]string{"c1": want["c1"]})
	}
	c1.unexport("hello")
	c1.gone("hello")
	c2.gone("hello")
}

// What kube-proxy serves lists what this cluster would use now: its own endpoints while it has any.
func TestDerivedSlicesFollowLocality(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	for _, m := range []*member{c1, c2} {
		m.serve(service(selectorless))
		m.export("hello")
	}
	c1.endpoints("hello", "10.11.250.1")
	c2.endpoints("hello", "10.12.250.1")
	c1.hasDerived("hello", "10.11.250.1:8080")
	c2.hasDerived("hello", "10.12.250.1:8080")
	must(t, c1.core.DiscoveryV1().EndpointSlices(c1.ns).Delete(t.Context(), "hello-by-hand", metav1.DeleteOptions{}))
	c1.hasDerived("hello", "10.12.250.1:8080")
}

// hasDerived waits until the slices behind the derived Service list these endpoints.
func (m *member) hasDerived(name string, want ...string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		list, err := m.core.DiscoveryV1().EndpointSlices(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=derived-" + name})
		if err != nil {
			return err
		}
		var have []string
		for _, s := range list.Items {
			for _, e := range s.Endpoints {
				have = append(have, fmt.Sprintf("%s:%d", e.Addresses[0], *s.Ports[0].Port))
			}
		}
		slices.Sort(have)
		return m.wrap(equal("derived endpoints", have, want))
	})
}

// The derived Service is the import's: it goes when a user deletes the import, and both come back.
func TestDeletedImportComesBack(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service())
	c1.export("hello")
	before := c2.imported("hello")
	must(t, c2.mcs.MulticlusterV1beta1().ServiceImports(c2.ns).Delete(t.Context(), "hello", metav1.DeleteOptions{}))
	c2.imported("hello", func(i *mcsv1beta1.ServiceImport) error {
		if i.UID == before.UID {
			return fmt.Errorf("it is still the deleted one")
		}
		return nil
	})
	s, err := c2.core.CoreV1().Services(c2.ns).Get(t.Context(), "derived-hello", metav1.GetOptions{})
	must(t, err)
	must(t, equal("owner", s.OwnerReferences[0].Kind, "ServiceImport"))
}

// §2.3: the address is the import's for life, whatever the exports do meanwhile.
func TestClusterSetIPStays(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	made := c1.serve(service())
	c1.export("hello")
	before := c2.imported("hello")
	c2.serve(service(ports(tcp42, corev1.ServicePort{Name: "more", Port: 1042})))
	c2.export("hello")
	c2.imported("hello", from("c1", "c2"), hasPorts("tcp TCP 42 , udp UDP 42 , more TCP 1042 "))
	made.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	_, err := c1.core.CoreV1().Services(c1.ns).Update(t.Context(), made, metav1.UpdateOptions{})
	must(t, err)
	c1.unexport("hello")
	after := c2.imported("hello", from("c2"))
	must(t, cmp.Or(equal("ips", after.Spec.IPs, before.Spec.IPs), equal("uid", after.UID, before.UID)))
}

// §2.3: neither does it change, nor is anything made anew, when every daemon is replaced.
func TestClusterSetIPStaysWhenDaemonsRestart(t *testing.T) {
	c1, c2 := clusterset(t)
	c1.serve(service())
	c1.export("hello")
	var before []*mcsv1beta1.ServiceImport
	for _, m := range []*member{c1, c2} {
		before = append(before, m.imported("hello"))
	}
	for _, m := range []*member{c1, c2} {
		_, err := m.lab.Kubectl(t.Context(), m.name, nil, "-n", "strait-system", "rollout", "restart", "daemonset/strait")
		must(t, err)
	}
	for n, m := range []*member{c1, c2} {
		_, err := m.lab.Kubectl(t.Context(), m.name, nil, "-n", "strait-system", "rollout", "status", "daemonset/strait", "--timeout=120s")
		must(t, err)
		remains(t, func() error {
			after, err := m.mcs.MulticlusterV1beta1().ServiceImports(m.ns).Get(t.Context(), "hello", metav1.GetOptions{})
			return m.wrap(cmp.Or(err, equal("ips", after.Spec.IPs, before[n].Spec.IPs), equal("uid", after.UID, before[n].UID)))
		})
	}
	// And they still decide.
	c1.unexport("hello")
	c2.gone("hello")
}

// A Service of other people that has the derived Service's name is left alone, and the import says so.
func TestDerivedNameTaken(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	taken := c2.serve(service(named("derived-hello")))
	c1.serve(service())
	c1.export("hello")
	c1.imported("hello")
	testutil.Eventually(t, within, func() error {
		i, err := c2.mcs.MulticlusterV1beta1().ServiceImports(c2.ns).Get(t.Context(), "hello", metav1.GetOptions{})
		if err == nil && !strings.Contains(fmt.Sprint(i.Status.Conditions), "derived-hello exists and is not strait's") {
			err = fmt.Errorf("conditions %+v do not say that the name is taken", i.Status.Conditions)
		}
		return cmp.Or(err, condition(i.Status.Conditions, "Ready", "False", "Pending"))
	})
	still, err := c2.core.CoreV1().Services(c2.ns).Get(t.Context(), "derived-hello", metav1.GetOptions{})
	must(t, err)
	must(t, cmp.Or(equal("ClusterIP", still.Spec.ClusterIP, taken.Spec.ClusterIP), equal("resourceVersion", still.ResourceVersion, taken.ResourceVersion)))
	must(t, c2.core.CoreV1().Services(c2.ns).Delete(context.Background(), "derived-hello", metav1.DeleteOptions{}))
	c2.imported("hello")
}

// Names may have 63 characters, and two of them may differ in the last only.
func TestLongestNames(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	ips := map[string]bool{}
	for _, last := range []string{"a", "b"} {
		name := strings.Repeat("x", 62) + last
		c1.serve(service(named(name)))
		c1.export(name)
		i := c2.imported(name)
		derived := i.Annotations["multicluster.kubernetes.io/derived-service"]
		if len(derived) > 63 || !strings.HasPrefix(derived, "derived-") {
			t.Errorf("derived Service %q: want a name of 63 characters at most", derived)
		}
		ips[i.Spec.IPs[0]] = true
		if got, _ := c2.lookup(name, "A"); fmt.Sprint(got) != fmt.Sprint(i.Spec.IPs) {
			t.Errorf("%s resolves as %q, want %q", name, got, i.Spec.IPs)
		}
	}
	must(t, equal("number of different addresses", len(ips), 2))
}

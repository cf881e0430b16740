package writer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// refuse has the API server refuse the objects of a resource in the namespace for which the
// expression is false, as invalid. Probe is one of them, which is refused by any policy that is in
// force.
func (b *bench) refuse(group, resource, expression string, probe func() error) {
	b.t.Helper()
	api, name := b.core.AdmissionregistrationV1(), "refuse-"+b.ns
	_, err := api.ValidatingAdmissionPolicies().Create(b.t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: expression, Message: "spec.trafficDistribution: not here", Reason: new(metav1.StatusReasonInvalid)}},
		},
	}, metav1.CreateOptions{})
	must(b.t, err)
	b.t.Cleanup(func() { _ = api.ValidatingAdmissionPolicies().Delete(b.t.Context(), name, metav1.DeleteOptions{}) })
	_, err = api.ValidatingAdmissionPolicyBindings().Create(b.t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": b.ns}}},
		},
	}, metav1.CreateOptions{})
	must(b.t, err)
	b.t.Cleanup(func() {
		_ = api.ValidatingAdmissionPolicyBindings().Delete(b.t.Context(), name, metav1.DeleteOptions{})
	})
	testutil.Eventually(b.t, 30*time.Second, func() error { // a policy is in force some time after it was made
		err := probe()
		if err == nil || !strings.Contains(err.Error(), "not here") {
			return fmt.Errorf("the policy is not in force: %v", err)
		}
		return nil
	})
}

// While a slice is refused, an endpoint that leaves another one goes, and what comes to another one
// is there.
func TestRefusedSliceHoldsUpNoOther(t *testing.T) {
	b := newBench(t)
	b.refuse("discovery.k8s.io", "endpointslices", "!has(object.ports) || object.ports.all(p, p.port != 9999)", func() error {
		_, err := b.core.DiscoveryV1().EndpointSlices(b.ns).Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "probe"}, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(9999))}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	w, _ := b.start()
	at := func(a string, port uint16) func(*mcs.Import) {
		return func(i *mcs.Import) {
			addr := netip.MustParseAddr(a)
			i.Endpoints = append(i.Endpoints, clustermesh.ClusterEndpoint{Cluster: "c2", Endpoint: clustermesh.Endpoint{
				Addr: addr, Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: port}}, Ready: true, Serving: true,
			}})
			i.Backends = append(i.Backends, mcs.Backend{Port: i.Ports[0], Addr: netip.AddrPortFrom(addr, port), Cluster: "c2", Ready: true, Serving: true})
		}
	}
	w.Submit(b.view(at("10.2.0.7", 8081)))
	b.eventually("import", ready)
	b.lists("10.1.0.1", "10.2.0.1", "10.2.0.7")
	w.Submit(b.view(at("10.2.0.8", 9999), at("10.2.0.9", 8082)))
	b.lists("10.1.0.1", "10.2.0.1", "10.2.0.9")
	testutil.Eventually(t, 10*time.Second, func() error {
		if ps := w.Problems(); len(ps) == 0 || !strings.Contains(ps[0].Message, "not here") {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
	w.Submit(b.view(at("10.2.0.9", 8082)))
	b.calm(w)
	b.lists("10.1.0.1", "10.2.0.1", "10.2.0.9")
}

// A slice that is full is split in two. While the other half is refused, as by a quota, no endpoint
// leaves the first one for it.
func TestRefusedHalf(t *testing.T) {
	b := newBench(t)
	w, _ := b.start()
	pods := func(from, to byte) (add func(*mcs.Import), all []string) {
		all = []string{"10.1.0.1", "10.2.0.1"} // those of every view
		for n := from; n < to; n++ {
			all = append(all, fmt.Sprintf("10.2.1.%d", n))
		}
		return func(i *mcs.Import) {
			for _, a := range all[2:] {
				addPod(i, "c2", netip.MustParseAddr(a))
			}
		}, all
	}
	full, addrs := pods(100, 199)
	w.Submit(b.view(full))
	b.eventually("import", ready)
	b.lists(addrs...)
	b.refuse("discovery.k8s.io", "endpointslices", "request.operation != 'CREATE'", func() error {
		_, err := b.core.DiscoveryV1().EndpointSlices(b.ns).Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "probe"}, AddressType: discoveryv1.AddressTypeIPv4,
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	more, addrs := pods(101, 203)
	w.Submit(b.view(more))
	testutil.Eventually(t, 20*time.Second, func() error {
		if ps := w.Problems(); len(ps) == 0 || !strings.Contains(ps[0].Message, "not here") {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
	b.hasAll(addrs[:100], "10.2.1.100") // 100 is gone, and of 199 to 202 those are there that need no other slice
}

// hasAll waits until gone is in no slice of the derived Service, and demands that the others are.
func (b *bench) hasAll(want []string, gone string) {
	b.t.Helper()
	testutil.Eventually(b.t, 15*time.Second, func() error {
		got, err := b.listed(discoveryv1.LabelServiceName + "=derived-serve")
		if err != nil {
			return err
		}
		if slices.Contains(got, gone) {
			return fmt.Errorf("%s is still in a slice", gone)
		}
		for _, a := range want {
			if !slices.Contains(got, a) {
				b.t.Fatalf("%s is in no slice: %v", a, got)
			}
		}
		return nil
	})
}

// An API server before Kubernetes 1.34 knows no PreferSameZone, and one before 1.31 no
// trafficDistribution. The lab's oldest drops the field. A policy stands in for servers that refuse
// the value.
func TestOlderAPIServer(t *testing.T) {
	for what, c := range map[string]struct{ cluster, expression, want string }{
		"1.31":          {"c1", "!has(object.spec.trafficDistribution) || object.spec.trafficDistribution == 'PreferClose'", "PreferClose"},
		"1.30, refuses": {"c1", "!has(object.spec.trafficDistribution)", ""},
		"1.30":          {"c2", "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBenchIn(t, c.cluster)
			if c.expression != "" {
				b.refuse("", "services", c.expression, func() error {
					_, err := b.core.CoreV1().Services(b.ns).Create(t.Context(), &corev1.Service{
						ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, TrafficDistribution: new("PreferSameZone")},
					}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					return err
				})
			}
			w, _ := b.start()
			w.Submit(b.view(func(i *mcs.Import) { i.TrafficDistribution = "PreferSameZone" }))
			b.eventually("import", ready)
			svc, err := b.core.CoreV1().Services(b.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
			must(t, err)
			got := ""
			if d := svc.Spec.TrafficDistribution; d != nil {
				got = *d
			}
			if got != c.want {
				t.Errorf("trafficDistribution %q, want %q", got, c.want)
			}
			testutil.Eventually(t, 10*time.Second, func() error {
				ps := w.Problems()
				if len(ps) != 1 || !ps[0].Warning || !strings.Contains(ps[0].Message, "does not know PreferSameZone") {
					return fmt.Errorf("problems %v", ps)
				}
				return nil
			})
			w.Submit(b.view())
			b.calm(w)
		})
	}
}

// Whatever other clusters export, the API server accepts what is written of it.
func TestForeignValuesAreAccepted(t *testing.T) {
	for _, cluster := range []string{"c1", "c2"} { // the newest API server and the oldest
		t.Run(cluster, func(t *testing.T) {
			b := newBenchIn(t, cluster)
			w, _ := b.start()
			w.Submit(b.view(func(i *mcs.Import) {
				i.Labels, i.Annotations = map[string]string{"a b": "c", "team": "x y"}, map[string]string{"a b": "c"}
				i.InternalTrafficPolicy, i.TrafficDistribution = "Near", "PreferSameRack"
				odd, of := clustermesh.ServicePort{Name: "h3", Proto: 33, Port: 443}, i.Endpoints[0]
				of.Cluster, of.Addr = "West_1", netip.MustParseAddr("10.3.0.1")
				i.Ports, i.Endpoints = append(i.Ports, odd), append(i.Endpoints, of)
				i.Endpoints[0].Ports = append(slices.Clone(i.Endpoints[0].Ports), clustermesh.EndpointPort{Name: "h3", Proto: 33, Port: 8443})
				i.Backends = append(i.Backends, mcs.Backend{Port: odd, Addr: netip.MustParseAddrPort("10.3.0.1:8443"), Cluster: "West_1", Ready: true})
				for n, name := range []string{"http_api", "", "UPPER", strings.Repeat("x", 64)} {
					i.Ports = append(i.Ports, clustermesh.ServicePort{Name: name, Proto: l4.TCP, Port: uint16(81 + n), AppProtocol: "a b"})
					addr := netip.AddrFrom4([4]byte{10, 2, 1, byte(n)})
					i.Endpoints = append(i.Endpoints, clustermesh.ClusterEndpoint{Cluster: "c2", Endpoint: clustermesh.Endpoint{
						Addr: addr, Zone: "rack 7", Hostname: name, Ready: true, Serving: true,
						Ports: []clustermesh.EndpointPort{{Name: name, Proto: l4.TCP, Port: 8081}, {Name: name + "_", Proto: l4.TCP, Port: 8082}},
					}})
					i.Backends = append(i.Backends, mcs.Backend{Port: i.Ports[len(i.Ports)-1], Addr: netip.AddrPortFrom(addr, 8081), Cluster: "c2", Zone: "rack 7", Ready: true, Serving: true})
				}
			}))
			b.eventually("import", ready)
			b.lists("10.1.0.1", "10.2.0.1", "10.2.1.0", "10.2.1.1", "10.2.1.2", "10.2.1.3")
			for _, p := range w.Problems() {
				if p.Code == problem.WriteRefused {
					t.Errorf("refused: %s", p)
				}
			}
		})
	}
}

// lists waits until the slices of the import, and those of the derived Service, list these
// addresses, each in one slice or several.
func (b *bench) lists(want ...string) {
	b.t.Helper()
	for _, label := range []string{"multicluster.kubernetes.io/service-name=serve", discoveryv1.LabelServiceName + "=derived-serve"} {
		testutil.Eventually(b.t, 15*time.Second, func() error {
			got, err := b.listed(label)
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("slices with %s list %v, want %v", label, got, want)
			}
			return err
		})
	}
}

// listed returns the addresses in the slices with a label, sorted, each once.
func (b *bench) listed(label string) (out []string, err error) {
	list, err := b.core.DiscoveryV1().EndpointSlices(b.ns).List(b.t.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, err
	}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			out = append(out, e.Addresses...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

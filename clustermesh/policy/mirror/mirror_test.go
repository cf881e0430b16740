package mirror_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
)

const set = "test"

// mirroring is a policy for all Services of the namespace shop, of all clusters, with some changes.
func mirroring(name string, change ...func(*policy.Spec)) policy.Policy {
	p := policy.Policy{TypeMeta: policy.Type, ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policy.Spec{
		From: []string{"*"}, To: []string{"*"}, Select: []policy.Term{{Namespaces: []string{"shop"}}}, As: policy.Mirror,
	}}
	for _, f := range change {
		f(&p.Spec)
	}
	return p
}

// age is how long ago a Service was made.
type age time.Duration

func service(name string, a age, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-time.Duration(a))),
		Labels: map[string]string{"app": name, "helm.sh/chart": "x", "topology.kubernetes.io/zone": "z"}, Annotations: map[string]string{"team": "a"},
	}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name}, ClusterIP: "10.96.0.9", Type: corev1.ServiceTypeNodePort}}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", p), Port: p, Protocol: corev1.ProtocolTCP, NodePort: 30000 + p})
	}
	return s
}

func slice(of string, addrs ...string) *discoveryv1.EndpointSlice {
	ready, node := true, "n1"
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: of + "-x1", Labels: map[string]string{discoveryv1.LabelServiceName: of, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
	}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, a := range addrs {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, NodeName: &node})
	}
	return s
}

func cluster(id string, objects ...any) mirror.Cluster {
	c := mirror.Cluster{ID: id, Namespaces: map[string]bool{"shop": true}}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Service:
			c.Services = append(c.Services, o)
		case *discoveryv1.EndpointSlice:
			c.Slices = append(c.Slices, o)
		}
	}
	return c
}

// apply carries out writes on a copy of what a cluster has.
func apply(c mirror.Cluster, ops []written.Op) mirror.Cluster {
	c.Services, c.Slices = slices.Clone(c.Services), slices.Clone(c.Slices)
	out := c
	out.Namespaces = map[string]bool{}
	for ns := range c.Namespaces {
		out.Namespaces[ns] = true
	}
	for _, o := range ops {
		switch {
		case o.Kind == written.Namespace:
			out.Namespaces[o.Object.GetName()] = true
		case o.Service() != nil:
			out.Services = slices.DeleteFunc(out.Services, func(s *corev1.Service) bool {
				return s.Namespace == o.Service().Namespace && s.Name == o.Service().Name
			})
			if o.Verb != written.Delete {
				s := defaulted(o.Service().DeepCopy())
				s.UID = types.UID("u-" + s.Name)
				out.Services = append(out.Services, s)
			}
		default:
			out.Slices = slices.DeleteFunc(out.Slices, func(s *discoveryv1.EndpointSlice) bool {
				return s.Namespace == o.Slice().Namespace && s.Name == o.Slice().Name
			})
			if o.Verb != written.Delete {
				out.Slices = append(out.Slices, o.Slice().DeepCopy())
			}
		}
	}
	return out
}

// defaulted fills in what an API server does.
func defaulted(s *corev1.Service) *corev1.Service {
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	s.Spec.SessionAffinity = cmp.Or(s.Spec.SessionAffinity, corev1.ServiceAffinityNone)
	s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	return s
}

// settle brings a cluster to its plan, and checks that a second pass has nothing to do.
func settle(t *testing.T, ps []policy.Policy, to mirror.Cluster, unknown map[string]bool, others ...mirror.Cluster) (mirror.Cluster, mirror.Plan) {
	t.Helper()
	pass := func() (mirror.Plan, []written.Op) {
		p := mirror.Wanted(set, ps, append(slices.Clone(others), to), to)
		return p, mirror.Diff(set, p, to, func(c string) bool { return unknown[c] })
	}
	p, ops := pass()
	to = apply(to, ops)
	if _, again := pass(); len(again) > 0 {
		t.Errorf("a second pass is not empty: %v", again)
	}
	return to, p
}

func known(string) bool { return false }

func find(t *testing.T, c mirror.Cluster, name string) *corev1.Service {
	t.Helper()
	for _, s := range c.Services {
		if s.Namespace+"/"+s.Name == name {
			return s
		}
	}
	t.Fatalf("cluster %s has no Service %s", c.ID, name)
	return nil
}

func reasons(p mirror.Plan) (out []string) {
	for _, s := range p.Skipped {
		out = append(out, s.Reason+" "+s.Source)
	}
	return out
}

func TestMirror(t *testing.T) {
	cart := service("cart", 0, 80)
	cart.Labels["mirror.linkerd.io/exported"], cart.Labels["service.cilium.io/global"] = "true", "true"
	got, _ := settle(t, []policy.Policy{mirroring("shop")}, cluster("c2"), nil, cluster("c1", cart, slice("cart", "10.1.0.1", "10.1.0.2")))
	s := find(t, got, "shop/cart")
	if s.Spec.Type != corev1.ServiceTypeClusterIP || s.Spec.Selector != nil || s.Spec.ClusterIP != "" || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].NodePort != 0 {
		t.Errorf("spec %+v", s.Spec)
	}
	want := map[string]string{"app": "cart", "helm.sh/chart": "x", "app.kubernetes.io/managed-by": "strait", mirror.LabelPolicy: "shop", mirror.LabelSet: set}
	if !reflect.DeepEqual(s.Labels, want) || !reflect.DeepEqual(s.Annotations, map[string]string{mirror.AnnotationFrom: "c1/shop/cart"}) {
		t.Errorf("labels %v, annotations %v", s.Labels, s.Annotations)
	}
	if len(got.Slices) != 1 || len(got.Slices[0].Endpoints) != 2 || got.Slices[0].Endpoints[0].NodeName != nil || got.Slices[0].Labels[mirror.LabelSource] != "c1" ||
		got.Slices[0].Labels[discoveryv1.LabelServiceName] != "cart" {
		t.Errorf("slices %+v", got.Slices)
	}
}

// TestRule1_TheEarlierPolicyWins: two policies that make different objects of one name.
func TestRule1_TheEarlierPolicyWins(t *testing.T) {
	c1 := cluster("c1", service("cart", 0, 80))
	one, two := mirroring("one"), mirroring("two", func(s *policy.Spec) { s.ExposeAs = "NodePort" })
	got, p := settle(t, []policy.Policy{one, two}, cluster("c2"), nil, c1)
	if s := find(t, got, "shop/cart"); s.Labels[mirror.LabelPolicy] != "one" || !slices.Equal(reasons(p), []string{"Conflict c1/shop/cart"}) {
		t.Errorf("made by %s, skipped %v", s.Labels[mirror.LabelPolicy], p.Skipped)
	}
	if _, p = settle(t, []policy.Policy{one, mirroring("same")}, cluster("c2"), nil, c1); len(p.Skipped) > 0 {
		t.Errorf("identical results are no conflict: %v", p.Skipped)
	}
}

func TestRule2_WhatIsNotOursIsNeverTouched(t *testing.T) {
	theirs := service("cart", 0, 99)
	for name, labels := range map[string]map[string]string{
		"no labels": nil, "another manager": {"app.kubernetes.io/managed-by": "helm", mirror.LabelSet: set},
		"strait's, but no mirror": {"app.kubernetes.io/managed-by": "strait"}, "another set's": {"app.kubernetes.io/managed-by": "strait", mirror.LabelSet: "other"},
	} {
		theirs.Labels = labels
		to := cluster("c2", theirs)
		p := mirror.Wanted(set, []policy.Policy{mirroring("shop")}, []mirror.Cluster{cluster("c1", service("cart", 0, 80), slice("cart", "10.1.0.1"))}, to)
		if ops := mirror.Diff(set, p, to, known); len(ops) > 0 || !slices.Equal(reasons(p), []string{"TargetExists c1/shop/cart"}) {
			t.Errorf("%s: %v, skipped %v", name, ops, p.Skipped)
		}
	}
}

func TestRule3_MirrorsAreNoSources(t *testing.T) {
	c1 := cluster("c1", service("cart", 0, 80))
	c2, _ := settle(t, []policy.Policy{mirroring("shop")}, cluster("c2"), nil, c1)
	linkerd := service("pay-c9", 0, 80)
	linkerd.Labels["mirror.linkerd.io/mirrored-service"] = "true"
	cilium, derived := service("derived-1", 0, 80), service("derived-2", 0, 80)
	cilium.Labels["multicluster.kubernetes.io/service-name"] = "pay"
	derived.OwnerReferences = []metav1.OwnerReference{{APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ServiceImport", Name: "pay"}}
	c2.Services = append(c2.Services, linkerd, cilium, derived)
	if back := mirror.Wanted(set, []policy.Policy{mirroring("shop")}, []mirror.Cluster{c1, c2}, c1); len(back.Mirrors) > 0 {
		t.Errorf("c1 gets %v", back.Mirrors[0].Service.Name)
	}
}

func TestRule4_SeveralSourcesAreMerged(t *testing.T) {
	c1 := cluster("c1", service("cart", 0, 80, 81), slice("cart", "10.1.0.1"))
	older := service("cart", age(time.Hour), 80, 90)
	older.Spec.Ports[0].Name = "web"
	c3 := cluster("c3", older, slice("cart", "10.3.0.1"))
	got, p := settle(t, []policy.Policy{mirroring("shop")}, cluster("c2"), nil, c1, c3)
	var ports []string
	for _, port := range find(t, got, "shop/cart").Spec.Ports {
		ports = append(ports, fmt.Sprint(port.Name, " ", port.Port))
	}
	if !slices.Equal(ports, []string{"web 80", "p90 90", "p81 81"}) || len(got.Slices) != 2 || !slices.Equal(p.Mirrors[0].From, []string{"c3", "c1"}) {
		t.Errorf("ports %v, %d slices, from %v", ports, len(got.Slices), p.Mirrors[0].From)
	}
	apart, _ := settle(t, []policy.Policy{mirroring("shop", func(s *policy.Spec) { s.Name = "{name}-{cluster}" })}, cluster("c2"), nil, c1, c3)
	find(t, apart, "shop/cart-c1")
	find(t, apart, "shop/cart-c3")
}

func TestRule5_ALongNameIsLeftOut(t *testing.T) {
	long := mirroring("shop", func(s *policy.Spec) { s.Name = "{name}-" + strings.Repeat("x", 59) })
	got, p := settle(t, []policy.Policy{long}, cluster("c2"), nil, cluster("c1", service("cart", 0, 80), service("a", 0, 80)))
	if len(got.Services) != 1 || !slices.Equal(reasons(p), []string{"InvalidName c1/shop/cart"}) {
		t.Errorf("%d Services, skipped %v", len(got.Services), p.Skipped)
	}
}

func TestRule6_Namespaces(t *testing.T) {
	c1, to := cluster("c1", service("cart", 0, 80)), cluster("c2")
	to.Namespaces = nil
	if got, p := settle(t, []policy.Policy{mirroring("shop")}, to, nil, c1); len(got.Services) > 0 || !slices.Equal(reasons(p), []string{"NamespaceMissing c1/shop/cart"}) {
		t.Errorf("%d Services, skipped %v", len(got.Services), p.Skipped)
	} else if want := "cluster c2 has no namespace shop; create it, or write createNamespace: true"; p.Skipped[0].Message != want {
		t.Errorf("%q; want %q", p.Skipped[0].Message, want)
	}
	create := mirroring("shop", func(s *policy.Spec) { s.CreateNamespace = true })
	got, _ := settle(t, []policy.Policy{create}, to, nil, c1)
	if !got.Namespaces["shop"] {
		t.Error("the namespace was not created")
	}
	if got, _ = settle(t, nil, got, nil, c1); !got.Namespaces["shop"] || len(got.Services) > 0 {
		t.Error("without the policy, the namespace goes or the Service stays")
	}
}

func TestRule7_UnknownIsNotEmpty(t *testing.T) {
	c1, c3 := cluster("c1", service("cart", 0, 80), slice("cart", "10.1.0.1")), cluster("c3", service("cart", age(time.Hour), 80, 90), slice("cart", "10.3.0.1"))
	ps := []policy.Policy{mirroring("shop")}
	both, _ := settle(t, ps, cluster("c2"), nil, c1, c3)
	held, _ := settle(t, ps, both, map[string]bool{"c3": true}, cluster("c1", service("cart", 0, 80), slice("cart", "10.1.0.1", "10.1.0.2")))
	if s := find(t, held, "shop/cart"); len(s.Spec.Ports) != 2 || len(held.Slices) != 2 {
		t.Errorf("c3 does not answer: %d ports, %d slices", len(s.Spec.Ports), len(held.Slices))
	}
	if !slices.ContainsFunc(held.Slices, func(s *discoveryv1.EndpointSlice) bool { return len(s.Endpoints) == 2 }) {
		t.Error("c1's new endpoint waits for c3")
	}
	gone, _ := settle(t, ps, held, nil, c1, cluster("c3"))
	if s := find(t, gone, "shop/cart"); len(s.Spec.Ports) != 1 || len(gone.Slices) != 1 {
		t.Errorf("c3 answers, and has none: %d ports, %d slices", len(s.Spec.Ports), len(gone.Slices))
	}
	if none, _ := settle(t, ps, gone, nil, cluster("c1"), cluster("c3")); len(none.Services)+len(none.Slices) > 0 {
		t.Errorf("no cluster has it: %d Services, %d slices", len(none.Services), len(none.Slices))
	}
}

// TestRule8_NewBeforeOld: after a change of the template, what is new is written first.
func TestRule8_NewBeforeOld(t *testing.T) {
	c1 := cluster("c1", service("cart", 0, 80), slice("cart", "10.1.0.1"))
	to, _ := settle(t, []policy.Policy{mirroring("shop")}, cluster("c2"), nil, c1)
	p := mirror.Wanted(set, []policy.Policy{mirroring("shop", func(s *policy.Spec) { s.Name = "{name}-{cluster}" })}, []mirror.Cluster{c1}, to)
	var verbs []string
	for _, o := range mirror.Diff(set, p, to, known) {
		verbs = append(verbs, o.String()[:strings.LastIndex(o.String(), "/")])
	}
	if want := []string{"create Service shop", "create EndpointSlice shop", "delete Service shop", "delete EndpointSlice shop"}; !slices.Equal(verbs, want) {
		t.Errorf("writes %v, want %v", verbs, want)
	}
}

// TestRule8_TheOldOneWaits: the mirror of the old name goes early until the new one has endpoints, if the
// source has any. What goes for another reason is not early.
func TestRule8_TheOldOneWaits(t *testing.T) {
	renamed := []policy.Policy{mirroring("shop", func(s *policy.Spec) { s.Name = "{name}-{cluster}" })}
	early := func(ps []policy.Policy, c1, to mirror.Cluster) (out []string) {
		for _, o := range mirror.Diff(set, mirror.Wanted(set, ps, []mirror.Cluster{c1}, to), to, known) {
			if o.Verb == written.Delete {
				out = append(out, fmt.Sprint(o.Early))
			}
		}
		return out
	}
	for _, c := range []struct {
		what  string
		addrs []string
		// made is how many of the writes are carried out: slice, Service.
		made int
		want []string
	}{
		{"nothing is there", []string{"10.1.0.1"}, 0, []string{"true", "true"}},
		{"a Service without endpoints", []string{"10.1.0.1"}, 1, []string{"true", "true"}},
		{"all is there", []string{"10.1.0.1"}, 2, []string{"false", "false"}},
		{"a source without pods, and no Service", nil, 0, []string{"true", "true"}},
		{"a source without pods", nil, 2, []string{"false", "false"}},
	} {
		c1 := cluster("c1", service("cart", 0, 80), slice("cart", c.addrs...))
		to, _ := settle(t, []policy.Policy{mirroring("shop")}, cluster("c2"), nil, c1)
		ops := mirror.Diff(set, mirror.Wanted(set, renamed, []mirror.Cluster{c1}, to), to, known)
		to = apply(to, ops[:c.made])
		if got := early(renamed, c1, to); !slices.Equal(got, c.want) {
			t.Errorf("%s: early %v, want %v", c.what, got, c.want)
		}
	}
	c1 := cluster("c1", service("cart", 0, 80), slice("cart", "10.1.0.1"))
	to, _ := settle(t, []policy.Policy{mirroring("shop")}, cluster("c2"), nil, c1)
	if got := early(nil, c1, to); !slices.Equal(got, []string{"false", "false"}) {
		t.Errorf("without the policy: early %v", got)
	}
}

// TestImports: a policy that imports makes namespaces, counts what is imported, and reports why something
// is not.
func TestImports(t *testing.T) {
	offer := func(id string, services ...clustermesh.ServiceName) mirror.Cluster {
		return mirror.Cluster{ID: id, Offered: map[string][]*corev1.Service{}, Exported: map[string][]clustermesh.ServiceName{"shop": services}}
	}
	cart, pay, other := clustermesh.ServiceName{Namespace: "shop", Name: "cart"}, clustermesh.ServiceName{Namespace: "pay", Name: "pay"}, clustermesh.ServiceName{Namespace: "x", Name: "x"}
	imports := func(create bool) []policy.Policy {
		return []policy.Policy{mirroring("shop", func(s *policy.Spec) {
			s.As, s.CreateNamespace, s.From = policy.Import, create, []string{"c1", "c3"}
			s.Select = []policy.Term{{Namespaces: []string{"shop", "pay"}, Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
		})}
	}
	others := []mirror.Cluster{offer("c1", cart, pay, other), offer("c3", cart), offer("c4", pay)}
	p := mirror.Wanted(set, imports(false), others, cluster("c2"))
	if p.Imported["shop"] != 1 || len(p.Namespaces) > 0 || !slices.Equal(reasons(p), []string{"NamespaceMissing c1/pay/pay"}) {
		t.Errorf("%d imported, namespaces %v, skipped %v", p.Imported["shop"], p.Namespaces, p.Skipped)
	}
	p = mirror.Wanted(set, imports(true), others, cluster("c2"))
	if p.Imported["shop"] != 2 || !slices.Equal(p.Namespaces, []string{"pay"}) || len(p.Skipped) > 0 {
		t.Errorf("%d imported, namespaces %v, skipped %v", p.Imported["shop"], p.Namespaces, p.Skipped)
	}
	to := cluster("c2")
	to.Barred = clustermesh.Barred{"pay"}
	p = mirror.Wanted(set, imports(true), others, to)
	if p.Imported["shop"] != 1 || len(p.Namespaces) > 0 || !slices.Equal(reasons(p), []string{"Barred c1/pay/pay"}) {
		t.Errorf("barred: %d imported, namespaces %v, skipped %v", p.Imported["shop"], p.Namespaces, p.Skipped)
	}
	if p = mirror.Wanted(set, imports(true), others, cluster("c1")); p.Imported["shop"] != 1 {
		t.Errorf("c1 imports %d; its own do not count", p.Imported["shop"])
	}
}

// TestAnnotations: those that are copied follow the source, and those that others write on a mirror, as
// the controller of a load balancer does, stay.
func TestAnnotations(t *testing.T) {
	ps := []policy.Policy{mirroring("shop", func(s *policy.Spec) { s.ExposeAs, s.Copy.Annotations = "LoadBalancer", []string{"team", "tier"} })}
	cart := service("cart", 0, 80)
	got, _ := settle(t, ps, cluster("c2"), nil, cluster("c1", cart))
	s := find(t, got, "shop/cart")
	if s.Annotations["team"] != "a" || s.Annotations[mirror.AnnotationCopied] != "team" {
		t.Errorf("annotations %v", s.Annotations)
	}
	s.Annotations["cloud.example/id"] = "lb-7"
	cart.Annotations = map[string]string{"tier": "web"}
	got, _ = settle(t, ps, got, nil, cluster("c1", cart))
	want := map[string]string{"tier": "web", "cloud.example/id": "lb-7", mirror.AnnotationCopied: "tier", mirror.AnnotationFrom: "c1/shop/cart"}
	if s = find(t, got, "shop/cart"); !reflect.DeepEqual(s.Annotations, want) {
		t.Errorf("annotations %v, want %v", s.Annotations, want)
	}
	got, _ = settle(t, []policy.Policy{mirroring("shop")}, got, nil, cluster("c1", cart))
	want = map[string]string{"cloud.example/id": "lb-7", mirror.AnnotationFrom: "c1/shop/cart"}
	if s = find(t, got, "shop/cart"); !reflect.DeepEqual(s.Annotations, want) {
		t.Errorf("annotations %v, want %v", s.Annotations, want)
	}
}

func TestRule9_Types(t *testing.T) {
	headless, external := service("db", 0, 5432), service("out", 0)
	headless.Spec.ClusterIP, headless.Spec.Type = corev1.ClusterIPNone, corev1.ServiceTypeClusterIP
	external.Spec.Type = corev1.ServiceTypeExternalName
	got, p := settle(t, []policy.Policy{mirroring("shop", func(s *policy.Spec) { s.ExposeAs = "LoadBalancer" })}, cluster("c2"), nil, cluster("c1", headless, external, service("cart", 0, 80)))
	if s := find(t, got, "shop/db"); s.Spec.ClusterIP != corev1.ClusterIPNone || s.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("a headless Service became %+v", s.Spec)
	}
	if s := find(t, got, "shop/cart"); s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		t.Errorf("exposeAs made %s", s.Spec.Type)
	}
	find(t, got, "shop/cart").Spec.Ports[0].NodePort = 31000 // by the API server
	kept, _ := settle(t, []policy.Policy{mirroring("shop", func(s *policy.Spec) { s.ExposeAs = "NodePort" })}, got, nil, cluster("c1", service("cart", 0, 80)))
	back, _ := settle(t, []policy.Policy{mirroring("shop")}, kept, nil, cluster("c1", service("cart", 0, 80)))
	if n, none := find(t, kept, "shop/cart").Spec.Ports[0].NodePort, find(t, back, "shop/cart").Spec.Ports[0].NodePort; n != 31000 || none != 0 {
		t.Errorf("node port %d, without exposeAs %d", n, none)
	}
	if !slices.Equal(reasons(p), []string{"ExternalName c1/shop/out"}) {
		t.Errorf("skipped %v", p.Skipped)
	}
}

// TestNoReadyEndpoints: a Service without any does not keep others from being mirrored.
func TestNoReadyEndpoints(t *testing.T) {
	got, p := settle(t, []policy.Policy{mirroring("shop")}, cluster("c2"), nil, cluster("c1", service("empty", 0, 80), slice("empty"), service("cart", 0, 80), slice("cart", "10.1.0.1")))
	if len(got.Services) != 2 || len(p.Skipped) > 0 {
		t.Errorf("%d Services, skipped %v", len(got.Services), p.Skipped)
	}
}

// TestEndpointsClusterIP: the mirror leads to the ClusterIPs of the source, which are ready while a pod is.
func TestEndpointsClusterIP(t *testing.T) {
	cart, headless := service("cart", 0, 80), service("db", 0, 5432)
	cart.Spec.ClusterIPs = []string{"10.96.0.9", "fd00:96::9"}
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	pods := slice("cart", "10.1.0.1")
	ps := []policy.Policy{mirroring("shop", func(s *policy.Spec) { s.Endpoints = policy.ClusterIP })}
	got, p := settle(t, ps, cluster("c2"), nil, cluster("c1", cart, pods, headless))
	find(t, got, "shop/cart")
	if !slices.Equal(reasons(p), []string{"NotSupported c1/shop/db"}) {
		t.Errorf("skipped %v", p.Skipped)
	}
	addrs := func() (out []string) {
		for _, s := range got.Slices {
			e := s.Endpoints[0]
			out = append(out, fmt.Sprint(s.AddressType, " ", e.Addresses, " ", *s.Ports[0].Port, " ", *e.Conditions.Ready))
		}
		return out
	}
	if want := []string{"IPv4 [10.96.0.9] 80 true", "IPv6 [fd00:96::9] 80 true"}; !slices.Equal(addrs(), want) {
		t.Errorf("slices %q, want %q", addrs(), want)
	}
	pods.Endpoints[0].Conditions.Ready = new(bool)
	got, _ = settle(t, ps, got, nil, cluster("c1", cart, pods, headless))
	if want := []string{"IPv4 [10.96.0.9] 80 false", "IPv6 [fd00:96::9] 80 false"}; !slices.Equal(addrs(), want) {
		t.Errorf("without a ready pod: %q, want %q", addrs(), want)
	}
	got, _ = settle(t, []policy.Policy{mirroring("shop")}, got, nil, cluster("c1", cart, pods))
	if len(got.Slices) != 1 || got.Slices[0].Endpoints[0].Addresses[0] != "10.1.0.1" {
		t.Errorf("back to pods: %+v", got.Slices)
	}
}

func TestSelect(t *testing.T) {
	svc := service("front-end", 0, 80)
	for want, terms := range map[bool][][]policy.Term{
		true: {
			{{Namespaces: []string{"other", "shop"}}}, {{Names: []string{"front.*"}}}, {{Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "front-end"}}}},
			{{Names: []string{"nothing"}}, {Names: []string{".*"}}},
		},
		false: {
			{{Namespaces: []string{"other"}}}, {{Names: []string{"front"}}}, {{Names: []string{"end"}}},
			{{Namespaces: []string{"shop"}, Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "back"}}}},
		},
	} {
		for _, terms := range terms {
			p := mirror.Wanted(set, []policy.Policy{mirroring("p", func(s *policy.Spec) { s.Select = terms })}, []mirror.Cluster{cluster("c1", svc)}, cluster("c2"))
			if (len(p.Mirrors) == 1) != want {
				t.Errorf("%+v selects it: %v", terms, !want)
			}
		}
	}
}

func TestFromAndTo(t *testing.T) {
	c1, c2, c3 := cluster("c1", service("cart", 0, 80)), cluster("c2"), cluster("c3")
	p := mirroring("p", func(s *policy.Spec) { s.From, s.To = []string{"c1"}, []string{"c2"} })
	for to, want := range map[*mirror.Cluster]int{&c1: 0, &c2: 1, &c3: 0} {
		if got := mirror.Wanted(set, []policy.Policy{p}, []mirror.Cluster{c1, c2, c3}, *to); len(got.Mirrors) != want {
			t.Errorf("%s gets %d", to.ID, len(got.Mirrors))
		}
	}
}

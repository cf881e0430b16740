package writer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

func TestForeignServiceIsNotTouched(t *testing.T) {
	b := newBench(t)
	theirs, err := b.core.CoreV1().Services(b.ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "derived-serve"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 9}}},
	}, metav1.CreateOptions{})
	must(t, err)
	w, _ := b.start()
	w.Submit(b.view())
	b.eventually("import", readyIs(metav1.ConditionFalse, "Pending"))
	testutil.Eventually(t, 5*time.Second, func() error {
		if ps := w.Problems(); len(ps) != 1 || !strings.Contains(ps[0].Message, "not strait's") {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
	now, err := b.core.CoreV1().Services(b.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
	must(t, err)
	if !reflect.DeepEqual(now, theirs) {
		t.Errorf("touched: %+v", now)
	}
	must(t, b.core.CoreV1().Services(b.ns).Delete(t.Context(), "derived-serve", metav1.DeleteOptions{}))
	b.eventually("when the name is free", ready)
	b.calm(w)
}

func TestUserImportIsHonoured(t *testing.T) {
	b := newBench(t)
	theirs, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Create(t.Context(), &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "serve"},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: "TCP"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	w, _ := b.start()
	w.Submit(b.empty())
	b.eventually("without exports", readyIs(metav1.ConditionFalse, "Pending"))
	w.Submit(b.view())
	i := b.eventually("import", ready)
	theirs.Spec.IPs = i.Spec.IPs
	if !reflect.DeepEqual(i.Spec, theirs.Spec) || len(i.Spec.IPs) != 1 || i.Annotations["multicluster.kubernetes.io/derived-service"] != "derived-serve" {
		t.Errorf("import %+v", i)
	}
	w.Submit(b.empty())
	after := b.eventually("after the unexport", readyIs(metav1.ConditionFalse, "Pending"))
	if !reflect.DeepEqual(after.Spec, i.Spec) {
		t.Errorf("spec %+v, was %+v", after.Spec, i.Spec)
	}
	b.calm(w)
	barred := b.view()
	barred.Config.Barred = clustermesh.Barred{b.ns}
	w.Submit(barred)
	theirs.Spec.IPs = nil
	b.eventually("in a barred namespace", func(i *mcsv1beta1.ServiceImport) error {
		if !reflect.DeepEqual(i.Spec, theirs.Spec) || len(i.Annotations) > 0 {
			return fmt.Errorf("import %+v", i)
		}
		return nil
	})
	b.rests(w, 0)
	if list, err := b.core.CoreV1().Services(b.ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("Services in a barred namespace: %+v, %v", list.Items, err)
	}
	b.calm(w)
}

// While a quota keeps the derived Service from being created, the import's condition has that, and
// everything else is written.
func TestQuotaOfServices(t *testing.T) {
	b := newBench(t)
	b.quota("count/services")
	w, _ := b.start()
	w.Submit(b.view())
	b.eventually("import", readyIs(metav1.ConditionFalse, "Pending"))
	b.eventually("why", func(i *mcsv1beta1.ServiceImport) error {
		if c := i.Status.Conditions[0]; !strings.Contains(c.Message, "cannot be created") || !strings.Contains(c.Message, "exceeded quota: few") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	if got, err := b.listed("multicluster.kubernetes.io/service-name=serve"); err != nil || !slices.Equal(got, []string{"10.1.0.1", "10.2.0.1"}) {
		t.Errorf("the import's slices list %v, %v", got, err)
	}
	if ps := w.Problems(); len(ps) != 1 || ps[0].Code != problem.WriteRefused || !strings.Contains(ps[0].Try, "ResourceQuota") {
		t.Errorf("problems %v", ps)
	}
	must(t, b.core.CoreV1().ResourceQuotas(b.ns).Delete(t.Context(), "few", metav1.DeleteOptions{}))
	b.eventually("without the quota", ready)
	b.calm(w)
}

// quota forbids any object of a kind in the namespace.
func (b *bench) quota(of corev1.ResourceName) {
	b.t.Helper()
	none := corev1.ResourceList{of: apiresource.MustParse("0")}
	quota, err := b.core.CoreV1().ResourceQuotas(b.ns).Create(b.t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	must(b.t, err)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // as its controller does
	_, err = b.core.CoreV1().ResourceQuotas(b.ns).UpdateStatus(b.t.Context(), quota, metav1.UpdateOptions{})
	must(b.t, err)
}

// While slices are refused, the import is as good as before, and shows what kube-proxy lacks.
func TestQuotaOfSlices(t *testing.T) {
	b := newBench(t)
	b.quota("count/endpointslices.discovery.k8s.io")
	w, _ := b.start()
	w.Submit(b.view())
	notes := func(want bool) func(*mcsv1beta1.ServiceImport) error {
		return func(i *mcsv1beta1.ServiceImport) error {
			if err := ready(i); err != nil {
				return err
			}
			if m := i.Status.Conditions[0].Message; strings.Contains(m, "exceeded quota: few") != want {
				return fmt.Errorf("message %q", m)
			}
			return nil
		}
	}
	b.eventually("import", notes(true))
	must(t, b.core.CoreV1().ResourceQuotas(b.ns).Delete(t.Context(), "few", metav1.DeleteOptions{}))
	b.eventually("without the quota", notes(false))
	b.lists("10.1.0.1", "10.2.0.1")
	b.calm(w)
}

// A user's import may ask for what no Service can have: the CRD accepts it. The derived Service has
// the rest.
func TestUserImportAsksForTooMuch(t *testing.T) {
	for _, cluster := range []string{"c1", "c2"} { // the newest API server and the oldest
		t.Run(cluster, func(t *testing.T) {
			b := newBenchIn(t, cluster)
			i := &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Name: "serve"}, Spec: mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, SessionAffinity: "Cookie", InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicy("Near")), TrafficDistribution: new("PreferSameRack"),
				SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(0))}},
				Ports: []mcsv1beta1.ServicePort{
					{Name: "HTTP_1", Port: 80, AppProtocol: new("a b")}, {Name: "zero"}, {Name: "high", Port: 65536}, {Name: "h3", Port: 443, Protocol: "QUIC"},
					{Name: "again", Port: 80, Protocol: "TCP"}, {Name: "dns", Port: 53, Protocol: "udp"}, {Name: "dns", Port: 54},
				},
			}}
			_, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Create(t.Context(), i, metav1.CreateOptions{})
			must(t, err)
			w, _ := b.start()
			w.Submit(b.view())
			b.eventually("import", ready)
			s, err := b.core.CoreV1().Services(b.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
			must(t, err)
			var ports []string
			for _, p := range s.Spec.Ports {
				ports = append(ports, fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol))
			}
			if slices.Sort(ports); !slices.Equal(ports, []string{"dns:53/UDP", "port-80-tcp:80/TCP"}) {
				t.Errorf("ports %q", ports)
			}
			b.lists("10.1.0.1", "10.2.0.1")
		})
	}
}

// A user's import whose ips another writer sets is a Problem, and is left as it is.
func TestUserImportWithItsOwnAddresses(t *testing.T) {
	b := newBench(t)
	_, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Create(t.Context(), &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "serve"},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, IPs: []string{"192.0.2.1"}, Ports: []mcsv1beta1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(t, err)
	w, _ := b.start()
	w.Submit(b.view())
	testutil.Eventually(t, 10*time.Second, func() error {
		if ps := w.Problems(); len(ps) != 1 || ps[0].Field != "spec.ips" || ps[0].Try == "" {
			return fmt.Errorf("problems %+v", ps)
		}
		return nil
	})
	i, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Get(t.Context(), "serve", metav1.GetOptions{})
	must(t, err)
	if i.Spec.IPs[0] != "192.0.2.1" {
		t.Errorf("ips %v", i.Spec.IPs)
	}
}

// A cluster of one family gives one address, one of two gives two, in its own order.
func TestAddressesOfTheClustersFamilies(t *testing.T) {
	b := newBench(t)
	w, _ := b.start()
	w.Submit(b.view())
	first := b.eventually("one family", ready)
	w.Submit(b.view(func(i *mcs.Import) { i.Families = append(i.Families, clustermesh.IPv6) }))
	var s *corev1.Service
	testutil.Eventually(t, 10*time.Second, func() (err error) {
		s, err = b.core.CoreV1().Services(b.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
		if err == nil && *s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack {
			return fmt.Errorf("policy %s", *s.Spec.IPFamilyPolicy)
		}
		return err
	})
	b.rests(w, 0)
	i := b.eventually("two families", ready)
	if !slices.Equal(i.Spec.IPs, s.Spec.ClusterIPs) ||
		!slices.Equal(i.Spec.IPFamilies, s.Spec.IPFamilies) || i.Spec.IPs[0] != first.Spec.IPs[0] {
		t.Errorf("ips %v of %v, was %v; Service %+v", i.Spec.IPs, i.Spec.IPFamilies, first.Spec.IPs, s.Spec)
	}
	w.Submit(b.view())
	b.rests(w, 0)
	if now := b.eventually("one family again", ready); !slices.Equal(now.Spec.IPs, i.Spec.IPs) {
		t.Errorf("ips %v, were %v", now.Spec.IPs, i.Spec.IPs)
	}
	b.calm(w)
}

func TestFamilyNotSupported(t *testing.T) {
	b := newBench(t)
	w, _ := b.start()
	w.Submit(b.view(func(i *mcs.Import) { i.Families = []clustermesh.Family{clustermesh.IPv6} }))
	if all, err := b.core.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{}); err != nil || strings.Contains(fmt.Sprint(all.Spec.CIDRs), "::") {
		testutil.Missing(t, fmt.Sprintf("needs an API server without IPv6 (%v)", err))
	}
	b.eventually("import", readyIs(metav1.ConditionFalse, "IPFamilyNotSupported"))
	if ps := w.Problems(); len(ps) != 1 || !strings.HasPrefix(ps[0].Field, "spec.ipFamilies") {
		t.Errorf("problems %+v", ps)
	}
}

func TestNothingIsWrittenWithoutLeading(t *testing.T) {
	b := newBench(t)
	var leading atomic.Bool
	w, stop := b.start(func(c *Config) { c.Leading = leading.Load })
	w.Submit(b.view())
	time.Sleep(time.Second)
	if n := total(w); n != 0 {
		t.Fatalf("%d writes", n)
	}
	stop()
	w, _ = b.start(func(c *Config) { c.Leading = leading.Load })
	w.Submit(b.view())
	time.Sleep(time.Second)
	leading.Store(true) // the Lease was renewed late: the term goes on, and nothing is submitted again
	b.eventually("import", ready)
	b.rests(w, 0)
	leading.Store(false)
	before := total(w)
	w.Submit(b.empty())
	if n := b.rests(w, before); n != 0 {
		t.Errorf("%d writes after the loss", n)
	}
}

// account makes a user that may do what the rules say, and what the ClusterRole of install must
// allow.
func (b *bench) account(sliceVerbs ...string) func(*Config) {
	user := "limited-" + b.ns
	status := []string{"patch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: sliceVerbs},
		{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"serviceimports"}, Verbs: []string{"list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"serviceexports"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"net.gke.io"}, Resources: []string{"serviceexports"}, Verbs: []string{"get"}},
		{APIGroups: []string{"multicluster.k8s.io"}, Resources: []string{"serviceexports"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"multicluster.k8s.io"}, Resources: []string{"serviceimports"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{"multicluster.k8s.io"}, Resources: []string{"serviceexports/status", "serviceimports/status"}, Verbs: status},
		{APIGroups: []string{"net.gke.io"}, Resources: []string{"serviceimports"}, Verbs: []string{"list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{"net.gke.io"}, Resources: []string{"serviceimports/status"}, Verbs: status},
		{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"serviceimports/status", "serviceexports/status"}, Verbs: status},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}}
	_, err := b.core.RbacV1().ClusterRoles().Create(b.t.Context(), role, metav1.CreateOptions{})
	must(b.t, err)
	_, err = b.core.RbacV1().ClusterRoleBindings().Create(b.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	must(b.t, err)
	return func(c *Config) {
		c.REST = rest.CopyConfig(b.rest)
		c.REST.Impersonate.UserName = user
	}
}

func TestLeastPrivilegeSuffices(t *testing.T) {
	b := newBench(t)
	b.export()
	w, _ := b.start(b.account("list", "watch", "create", "patch", "delete"))
	w.Submit(b.view())
	b.eventually("import", ready)
	w.Submit(b.view(func(i *mcs.Import) { i.Ports, i.Endpoints, i.Backends = i.Ports[:1], i.Endpoints[:1], nil }))
	b.eventually("fewer ports", func(i *mcsv1beta1.ServiceImport) error {
		if len(i.Spec.Ports) != 1 {
			return fmt.Errorf("%d ports", len(i.Spec.Ports))
		}
		return ready(i)
	})
	w.Submit(b.empty())
	b.rests(w, 0)
	for k := range w.Writes() {
		if k.Failed {
			t.Errorf("failed: %v", k)
		}
	}
	b.calm(w)
}

// What the account may not write is a Problem that names it; the rest is written.
func TestForbiddenKindIsAProblemAndTheRestGoesOn(t *testing.T) {
	b := newBench(t)
	b.export()
	w, _ := b.start(b.account("list", "watch"))
	w.Submit(b.view())
	b.eventually("import", ready)
	testutil.Eventually(t, 5*time.Second, func() error {
		for _, p := range w.Problems() {
			if strings.Contains(p.Object, "EndpointSlice") && strings.Contains(p.Try, "ClusterRole") {
				return nil
			}
		}
		return fmt.Errorf("problems %v", w.Problems())
	})
}

func TestUnreadableKindIsAProblem(t *testing.T) {
	b := newBench(t)
	w, _ := b.start(func(c *Config) {
		c.REST = rest.CopyConfig(b.rest)
		c.REST.Impersonate.UserName = "nobody-" + b.ns
	})
	w.Submit(b.view())
	testutil.Eventually(t, 5*time.Second, func() error {
		if ps := w.Problems(); len(ps) != 4 || !strings.Contains(ps[0].Try, "list and watch") {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
	if n := total(w); n != 0 {
		t.Errorf("%d writes before all was read", n)
	}
}

// In a namespace that is going nothing can be made, and that is no Problem.
func TestTerminatingNamespace(t *testing.T) {
	b := newBench(t)
	must(t, b.core.CoreV1().Namespaces().Delete(t.Context(), b.ns, metav1.DeleteOptions{}))
	w, _ := b.start()
	w.Submit(b.view())
	testutil.Eventually(t, 5*time.Second, func() error {
		if total(w) == 0 {
			return fmt.Errorf("no write was tried")
		}
		return nil
	})
	b.calm(w)
}

// What is there already can be written in such a namespace, but no Events of it. That is no error.
func TestEventsOfATerminatingNamespace(t *testing.T) {
	b := newBench(t)
	var log heard
	w, _ := b.start(log.warnings)
	w.Submit(b.view())
	b.eventually("import", ready)
	must(t, b.core.CoreV1().Namespaces().Delete(t.Context(), b.ns, metav1.DeleteOptions{}))
	w.Submit(b.view(func(i *mcs.Import) { i.Type = clustermesh.Headless }))
	b.rests(w, 0)
	w.Submit(b.view(func(i *mcs.Import) { i.Ports = nil }))
	b.eventually("without ports", readyIs(metav1.ConditionFalse, "Pending"))
	b.rests(w, 0)
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("logged: %s", log.String())
	}
}

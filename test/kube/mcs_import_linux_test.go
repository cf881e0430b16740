package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/internal/testutil"
)

// From the export in one cluster to an import with an address in the other.
func TestExportIsImportedWithinTwoSeconds(t *testing.T) {
	c1, c2 := clusterset(t)
	var took []time.Duration
	for n := range 5 {
		name := fmt.Sprintf("hello-%d", n)
		c1.serve(service(named(name)))
		ctx, cancel := context.WithTimeout(t.Context(), within) // ends the watch
		defer cancel()
		w, err := c2.mcs.MulticlusterV1beta1().ServiceImports(c2.ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		must(t, err)
		start := time.Now()
		c1.export(name)
		imported := false
		for e := range w.ResultChan() {
			if i, ok := e.Object.(*mcsv1beta1.ServiceImport); ok && len(i.Spec.IPs) > 0 && ready(i) == nil {
				imported = true
				break
			}
		}
		took = append(took, time.Since(start))
		w.Stop()
		if !imported {
			t.Fatalf("%s is not imported: the watch ended after %v", name, took[n])
		}
	}
	slices.Sort(took)
	t.Logf("export in c1 to a ready import in c2: median %v of %v", took[2], took)
	if took[2] > 2*time.Second {
		t.Errorf("an export is imported after %v, want 2 s at most", took[2])
	}
}

// E1, E2, E8, I1, I4: an export brings an import to every cluster, the exporter's own too, and takes it away.
func TestExportBringsAndTakesImports(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service())
	remains(t, func() error { return cmp.Or(c1.absent("hello"), c2.absent("hello")) })
	c1.export("hello")
	for _, m := range []*member{c1, c2} {
		i := m.imported("hello", from("c1"))
		must(t, m.wrap(equal("type", i.Spec.Type, mcsv1beta1.ClusterSetIP)))
		must(t, m.wrap(equal("endpointSliceObjects", i.Status.EndpointSliceObjects, mcsv1beta1.EndpointSliceObjectsPresent)))
		must(t, m.wrap(equal("annotation", i.Annotations["multicluster.kubernetes.io/derived-service"], "derived-hello")))
	}
	c1.exportHas("hello", "Valid", "True", "Valid")
	c1.exportHas("hello", "Ready", "True", "Exported")
	c1.exportHas("hello", "Conflict", "False", "NoConflicts")
	c1.unexport("hello")
	c1.gone("hello")
	c2.gone("hello")
}

// I4, E3: the import of two exports goes with the second, and is not made anew in between.
func TestImportLivesWhileOneExportDoes(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	for _, m := range []*member{c1, c2} {
		m.serve(service())
		m.export("hello")
	}
	before := c1.imported("hello", from("c1", "c2"))
	w, err := c1.mcs.MulticlusterV1beta1().ServiceImports(c1.ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	must(t, err)
	defer w.Stop()
	c1.unexport("hello")
	after := c1.imported("hello", from("c2"))
	must(t, equal("ips", after.Spec.IPs, before.Spec.IPs))
	must(t, equal("uid", after.UID, before.UID))
	remains(t, func() error {
		select {
		case e := <-w.ResultChan():
			if e.Type == watch.Deleted {
				return fmt.Errorf("the import was deleted though c2 exports: %v", e.Object)
			}
		default:
		}
		return nil
	})
	c2.unexport("hello")
	c1.gone("hello")
	c2.gone("hello")
}

// The import says what the Service says, in every cluster.
func TestImportSaysWhatTheServiceSays(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	cluster, close, timeout, app := corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceTrafficDistributionPreferClose, int32(10), "http"
	c1.serve(service(func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
		s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = &cluster, &close
		s.Spec.Ports[0].AppProtocol = &app
	}))
	c1.export("hello")
	for _, m := range []*member{c1, c2} {
		spec := m.imported("hello").Spec
		for _, err := range []error{
			equal("ports", portsOf(spec), "tcp TCP 42 http, udp UDP 42 "),
			equal("sessionAffinity", spec.SessionAffinity, corev1.ServiceAffinityClientIP),
			equal("timeoutSeconds", *spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, timeout),
			equal("internalTrafficPolicy", *spec.InternalTrafficPolicy, cluster),
			equal("trafficDistribution", *spec.TrafficDistribution, close),
			equal("ipFamilies", spec.IPFamilies, []corev1.IPFamily{corev1.IPv4Protocol}),
			equal("number of ips", len(spec.IPs), 1),
		} {
			if err != nil {
				t.Error(m.wrap(err))
			}
		}
		ip, err := netip.ParseAddr(spec.IPs[0])
		must(t, err)
		c, err := m.lab.Cluster(m.name)
		must(t, err)
		if !c.Services.Contains(ip) {
			t.Errorf("%s: ClusterSetIP %s is none of the cluster's own %s", m.name, ip, c.Services)
		}
	}
}

func portsOf(s mcsv1beta1.ServiceImportSpec) string {
	out := ""
	for n, p := range s.Ports {
		if n > 0 {
			out += ", "
		}
		app := ""
		if p.AppProtocol != nil {
			app = *p.AppProtocol
		}
		out += fmt.Sprintf("%s %s %d %s", p.Name, p.Protocol, p.Port, app)
	}
	return out
}

// E7: the export's labels and annotations reach the import, the Service's own do not.
func TestOnlyExportedLabelsReachTheImport(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service())
	c1.export("hello", exporting("a", "1"), func(e *mcsv1beta1.ServiceExport) { e.Labels = map[string]string{"on-export": "x"} })
	for _, m := range []*member{c1, c2} {
		i := m.imported("hello")
		must(t, m.wrap(equal("label", i.Labels["example.com/a"], "1")))
		must(t, m.wrap(equal("annotation", i.Annotations["example.com/a"], "1")))
		for _, k := range []string{"dummy-svc", "on-export"} {
			if _, leaked := i.Labels[k]; leaked || i.Annotations[k] != "" {
				t.Errorf("%s: %s leaked to the import", m.name, k)
			}
		}
	}
}

func exporting(key, value string) func(*mcsv1beta1.ServiceExport) {
	return func(e *mcsv1beta1.ServiceExport) {
		e.Spec.ExportedLabels = map[string]string{"example.com/" + key: value}
		e.Spec.ExportedAnnotations = map[string]string{"example.com/" + key: value}
	}
}

// E4: a Service without an export in its own cluster contributes nothing, neither ports nor endpoints.
func TestServiceWithoutExportContributesNothing(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service())
	c2.serve(service(ports(corev1.ServicePort{Name: "other", Port: 43})))
	c1.export("hello")
	for _, m := range []*member{c1, c2} {
		m.imported("hello", from("c1"))
	}
	remains(t, func() error {
		i, err := c2.mcs.MulticlusterV1beta1().ServiceImports(c2.ns).Get(t.Context(), "hello", metav1.GetOptions{})
		return cmp.Or(err, from("c1")(i), equal("ports", portsOf(i.Spec), "tcp TCP 42 , udp UDP 42 "))
	})
	c1.exportHas("hello", "Conflict", "False", "NoConflicts")
}

// E5
func TestExternalNameIsInvalid(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service(func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
	}))
	c1.export("hello")
	c1.exportHas("hello", "Valid", "False", "InvalidServiceType")
	remains(t, func() error { return cmp.Or(c1.absent("hello"), c2.absent("hello")) })
}

// E6: a NodePort Service is exported as ClusterIP, and stays as it is.
func TestNodePortIsExportedAsClusterIP(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	before := c1.serve(service(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }))
	c1.export("hello")
	must(t, equal("type", c2.imported("hello").Spec.Type, mcsv1beta1.ClusterSetIP))
	after, err := c1.core.CoreV1().Services(c1.ns).Get(t.Context(), "hello", metav1.GetOptions{})
	must(t, err)
	must(t, equal("resourceVersion of the Service", after.ResourceVersion, before.ResourceVersion))
}

// An export may come before its Service.
func TestServiceMayComeAfterItsExport(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.export("hello")
	c1.exportHas("hello", "Valid", "False", "NoService")
	must(t, c2.absent("hello"))
	c1.serve(service())
	c1.exportHas("hello", "Valid", "True", "Valid")
	c2.imported("hello", from("c1"))
	must(t, c1.core.CoreV1().Services(c1.ns).Delete(t.Context(), "hello", metav1.DeleteOptions{}))
	c1.exportHas("hello", "Valid", "False", "NoService")
	c1.gone("hello")
	c2.gone("hello")
}

// I1, I2: a cluster without the namespace gets nothing; when the namespace comes, so does the import.
func TestNamespaceCreatedLater(t *testing.T) {
	t.Parallel()
	c1, c2 := apart(t)
	c1.makeNamespace()
	c1.serve(service())
	c1.export("hello")
	c1.imported("hello", from("c1"))
	remains(t, func() error {
		list, err := c2.core.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + c2.ns})
		return cmp.Or(err, equal("namespaces", len(list.Items), 0))
	})
	if got, ok := c2.lookup("hello", "A"); ok {
		t.Errorf("c2 lacks the namespace, and resolves the service as %s", got)
	}
	c2.makeNamespace()
	c2.imported("hello", from("c1"))
	testutil.Eventually(t, within, func() error {
		if _, ok := c2.lookup("hello", "A"); !ok {
			return fmt.Errorf("c2 does not resolve the service")
		}
		return nil
	})
	must(t, c2.core.CoreV1().Namespaces().Delete(t.Context(), c2.ns, metav1.DeleteOptions{}))
	testutil.Eventually(t, within, func() error {
		list, err := c2.core.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + c2.ns})
		return cmp.Or(err, equal("namespaces of that name", len(list.Items), 0))
	})
}

// E9: what is exported from a namespace that is Kubernetes' own goes nowhere, and the export says why.
func TestReservedNamespaces(t *testing.T) {
	t.Parallel()
	c1, c2 := apart(t)
	name := "export-" + c1.ns[len(c1.ns)-6:]
	c1.ns, c2.ns = "kube-public", "kube-public"
	c1.serve(service(named(name)))
	t.Cleanup(func() {
		_, err := c1.lab.Kubectl(context.Background(), c1.name, nil, "-n", c1.ns, "delete", "services,serviceexports.multicluster.x-k8s.io", name)
		if err != nil {
			t.Error(err)
		}
	})
	c1.export(name)
	message := c1.exportHas(name, "Ready", "False", "Failed")
	c1.exportHas(name, "Valid", "True", "Valid")
	t.Log(message)
	remains(t, func() error { return cmp.Or(c1.absent(name), c2.absent(name)) })
}

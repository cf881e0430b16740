package leader

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/testutil"
)

const (
	multiService = `
apiVersion: networking.gke.io/v1
kind: MultiClusterService
metadata: {name: whereami-mcs, annotations: {service.strait.io/locality: clusterset}}
spec:
  template:
    spec:
      selector: {app: whereami}
      ports: [{name: web, protocol: TCP, port: 8080, targetPort: 8080}]
`
	multiIngress = `
apiVersion: networking.gke.io/v1beta1
kind: MultiClusterIngress
metadata: {name: whereami-ingress, annotations: {strait.io/ingress-class: some}}
spec:
  template:
    spec: {backend: {serviceName: whereami-mcs, servicePort: 8080}}
`
)

// newGKE is a world whose clusters know the kinds of networking.gke.io.
func newGKE(t *testing.T) *world {
	w := newWorld(t, nil)
	w.gkeKinds("c1", "c2")
	return w
}

// gkeKinds makes the kinds of networking.gke.io in clusters.
func (w *world) gkeKinds(clusters ...string) {
	w.Helper()
	text, err := os.ReadFile("../../install/examples/kubernetes/gke-crds.yaml")
	w.must(err)
	for _, c := range clusters {
		_, err := w.lab.Kubectl(w.Context(), c, text, "apply", "-f", "-")
		w.must(err)
		w.undo(c, "delete", "crd", "multiclusterservices.networking.gke.io", "multiclusteringresses.networking.gke.io")
	}
}

// podsOf writes one pod behind a Service: this lab has no nodes.
func (w *world) podsOf(cluster, service, addr string) {
	w.Helper()
	w.apply(cluster, fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
metadata: {name: pods, labels: {kubernetes.io/service-name: %s, endpointslice.kubernetes.io/managed-by: test}},
ports: [{name: web, port: 8080, protocol: TCP}], endpoints: [{addresses: [%q], nodeName: %s-node, conditions: {ready: true}}]}`, service, addr, cluster))
}

// TestMultiClusterService: the same object in two clusters selects the pods of both, a list of
// clusters takes the headless Service away from those that it lacks, and what is not carried out is
// refused by name.
func TestMultiClusterService(t *testing.T) {
	w := newGKE(t)
	name := object.DerivedName(w.ns, "whereami-mcs")
	for i, c := range []string{"c1", "c2"} {
		w.podsOf(c, name, fmt.Sprintf("10.1%d.0.1", i+1))
		w.apply(c, multiService)
		w.becomes(c, "service/"+name, `{.spec.clusterIP} {.spec.selector.app} {.spec.ports[0].port} {.metadata.ownerReferences[0].name}`, "None whereami 8080 whereami-mcs")
		w.becomes(c, "mcs/whereami-mcs", readiness, "True InForce")
	}
	derived := strings.Fields(w.derived("c1", name))[0]
	for _, c := range []string{"c1", "c2"} {
		w.becomes(c, "serviceimport/"+name, readiness+" {.spec.type}", "True Ready ClusterSetIP")
	}
	both := []string{name + " of-c1 IPv4 10.11.0.1", name + " of-c2 IPv4 10.12.0.1", derived + " of-c1 IPv4 10.11.0.1", derived + " of-c2 IPv4 10.12.0.1"}
	w.slices("c1", both...)
	w.slices("c2", both...)

	// Each cluster carries out its own half.
	list := strings.Replace(multiService, "spec:\n", "spec:\n  clusters: [{link: anywhere/of-c1}]\n", 1)
	w.apply("c1", list)
	w.apply("c2", list)
	w.becomes("c2", "mcs/whereami-mcs", readiness, "True NotListed")
	w.until("c2", "", "-n", w.ns, "get", "service", name, "-o", "name", "--ignore-not-found")
	for _, c := range []string{"c1", "c2"} {
		w.slices(c, both[0], both[2])
	}
	w.apply("c2", multiService)
	w.slices("c1", both...)

	// What strait does not carry out is refused, and takes back what was made.
	w.apply("c2", strings.Replace(multiService, "      selector", "      sessionAffinity: ClientIP\n      selector", 1))
	w.becomes("c2", "mcs/whereami-mcs", readiness+` {.status.conditions[0].message}`, "False Invalid spec.template.spec.sessionAffinity: Forbidden: strait does not carry this out")
	w.slices("c1", both[0], both[2])
	w.apply("c2", `{apiVersion: v1, kind: Service, metadata: {name: `+object.DerivedName(w.ns, "other")+`}, spec: {clusterIP: None, ports: [{port: 1}]}}`)
	w.apply("c2", strings.Replace(multiService, "whereami-mcs", "other", 1))
	w.becomes("c2", "mcs/other", readiness, "False Failed")
	w.becomes("c2", "service/"+object.DerivedName(w.ns, "other"), "{.metadata.labels} {.spec.selector}", "")

	w.kubectl("c1", "-n", w.ns, "delete", "mcs", "whereami-mcs")
	w.until("c1", "", "-n", w.ns, "get", "services,serviceimports", "-o", "name")
}

// derived waits for the derived Service of an import, and returns its name.
func (w *world) derived(cluster, imported string) (name string) {
	w.Helper()
	testutil.Eventually(w, within, func() error {
		out, err := w.lab.Kubectl(w.Context(), cluster, nil, "-n", w.ns, "get", "serviceimport", imported, "-o",
			`jsonpath={.metadata.annotations.multicluster\.kubernetes\.io/derived-service}`)
		if name = strings.TrimSpace(out); err == nil && name == "" {
			err = fmt.Errorf("%s: ServiceImport %s names no derived Service", cluster, imported)
		}
		return err
	})
	return name
}

// TestMultiClusterIngress: it becomes an Ingress that leads to the derived Service, whose address
// it shows.
func TestMultiClusterIngress(t *testing.T) {
	w := newGKE(t)
	name := object.DerivedName(w.ns, "whereami-mcs")
	w.apply("c1", multiIngress)
	w.becomes("c1", "mci/whereami-ingress", readiness, "False Invalid")
	w.apply("c1", multiService)
	w.becomes("c1", "mci/whereami-ingress", readiness, "True InForce")
	w.podsOf("c1", name, "10.11.0.1")
	w.becomes("c1", "ingress/whereami-ingress", `{.spec.ingressClassName} {.spec.defaultBackend.service.name} {.spec.defaultBackend.service.port.number}`, "some "+w.derived("c1", name)+" 8080")
	w.kubectl("c1", "-n", w.ns, "patch", "ingress", "whereami-ingress", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}`)
	w.becomes("c1", "mci/whereami-ingress", "{.status.VIP}", "192.0.2.7")

	w.apply("c1", strings.Replace(multiIngress, "some}", "some, networking.gke.io/pre-shared-certs: cert}", 1))
	w.becomes("c1", "mci/whereami-ingress", readiness, "False Invalid")
	w.until("c1", "", "-n", w.ns, "get", "ingresses", "-o", "name")
	w.status("c1", "metadata.annotations[networking.gke.io/pre-shared-certs]")
}

// status waits until strait status of a cluster has a text; spaces and line ends do not count.
func (w *world) status(cluster, want string) {
	w.Helper()
	flat := func(s string) string { return strings.Join(strings.Fields(s), "") }
	testutil.Eventually(w, within, func() error {
		out, err := exec.CommandContext(w.Context(), w.bin("strait"), "status", "--socket", filepath.Join(w.dir, cluster, "run", "strait.sock")).CombinedOutput()
		if !strings.Contains(flat(string(out)), flat(want)) {
			return fmt.Errorf("strait status of %s (%v) lacks %q:\n%s", cluster, err, want, out)
		}
		return nil
	})
}

// TestGatewayRules reads what strait writes as Envoy Gateway does when a route's backend is a
// ServiceImport: it indexes slices by the label of a Service first, takes those of the import's
// label, matches their ports by name, reads names and protocols without asking whether they are
// set, and drains by conditions. Gateways that know no imports find the derived Service.
func TestGatewayRules(t *testing.T) {
	w := newGKE(t)
	name := object.DerivedName(w.ns, "whereami-mcs")
	for i, c := range []string{"c1", "c2"} {
		w.podsOf(c, name, fmt.Sprintf("10.1%d.0.1", i+1))
		w.apply(c, multiService)
	}
	derived := w.derived("c1", name)
	w.slices("c1", name+" of-c1 IPv4 10.11.0.1", name+" of-c2 IPv4 10.12.0.1", derived+" of-c1 IPv4 10.11.0.1", derived+" of-c2 IPv4 10.12.0.1")

	var i mcsv1beta1.ServiceImport
	w.must(json.Unmarshal([]byte(w.kubectl("c1", "-n", w.ns, "get", "serviceimport", name, "-o", "json")), &i))
	// It reads the older version.
	w.must(json.Unmarshal([]byte(w.kubectl("c1", "-n", w.ns, "get", "serviceimports.v1alpha1.multicluster.x-k8s.io", name, "-o", "json")), &struct{}{}))
	var all discoveryv1.EndpointSliceList
	w.must(json.Unmarshal([]byte(w.kubectl("c1", "-n", w.ns, "get", "endpointslices", "-o", "json")), &all))
	imported, service := envoyGateway(all.Items, name, i.Spec.Ports[0].Name, t), byService(all.Items, derived)
	if want := []string{"10.11.0.1:8080", "10.12.0.1:8080"}; !slices.Equal(imported, want) || !slices.Equal(service, want) {
		t.Errorf("a gateway finds %q behind the import and %q behind the derived Service, want %q", imported, service, want)
	}
	if i.Spec.Type != mcsv1beta1.ClusterSetIP || len(i.Spec.IPs) != 1 || i.Spec.Ports[0].Port != 8080 {
		t.Errorf("%+v", i.Spec)
	}
}

// envoyGateway returns the backends behind an import's port.
func envoyGateway(all []discoveryv1.EndpointSlice, imported, port string, t *testing.T) (out []string) {
	for _, s := range all {
		if s.Labels[discoveryv1.LabelServiceName] != "" { // counts as a Service's, whatever else it carries
			continue
		}
		if s.Labels[mcsv1beta1.LabelServiceName] != imported {
			continue
		}
		for _, p := range s.Ports {
			if p.Name == nil || p.Protocol == nil || p.Port == nil {
				t.Fatalf("the gateway crashes at slice %s: port %+v", s.Name, p)
			}
			if *p.Name != port {
				continue
			}
			for _, e := range s.Endpoints {
				if e.Conditions.Serving == nil || e.Conditions.Terminating == nil || e.Conditions.Ready == nil {
					t.Errorf("slice %s: conditions of %v are not all set: %+v", s.Name, e.Addresses, e.Conditions)
				}
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					out = append(out, fmt.Sprintf("%s:%d", e.Addresses[0], *p.Port))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// byService returns the backends behind a Service with one port.
func byService(all []discoveryv1.EndpointSlice, service string) (out []string) {
	for _, s := range all {
		if s.Labels[discoveryv1.LabelServiceName] == service {
			for _, e := range s.Endpoints {
				out = append(out, fmt.Sprintf("%s:%d", e.Addresses[0], *s.Ports[0].Port))
			}
		}
	}
	slices.Sort(out)
	return out
}

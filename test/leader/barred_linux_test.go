package leader

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// The admission policy keeps all others from what strait manages, and strait from nothing.
func TestAdmissionPolicy(t *testing.T) {
	w := newWorld(t, nil)
	w.apply("c2", serve) // the daemons write under the policy
	for _, c := range []string{"c1", "c2"} {
		w.becomes(c, "serviceimport/serve", readiness, "True Ready")
	}
	const managed, barred = "managed by strait", "barred"
	for _, args := range []string{
		"patch serviceimport serve --type=merge -p {\"spec\":{\"ips\":[\"192.0.2.1\"]}}", "label serviceimport serve app.kubernetes.io/managed-by-",
		"delete serviceimport serve", "delete service derived-serve", "annotate service derived-serve a=b",
		"label service serve app.kubernetes.io/managed-by=strait",
	} {
		w.refused("c2", "", managed, append([]string{"-n", w.ns}, strings.Fields(args)...)...)
	}
	w.refused("c2", serve, barred, "-n", "kube-system", "apply", "-f", "-")
	w.kubectl("c2", "-n", "kube-system", "delete", "service/serve", "endpointslice/serve-4")
	w.refused("c2", "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: kubernetes}}", "default/kubernetes", "-n", "default", "create", "-f", "-")

	// What is the users' own stays theirs.
	w.kubectl("c2", "-n", w.ns, "annotate", "service", "serve", "a=b")
	w.apply("c1", "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, metadata: {name: mine}, spec: {type: ClusterSetIP, ports: [{port: 80}]}}")
	w.becomes("c1", "serviceimport/mine", readiness, "False Pending")
	w.kubectl("c1", "-n", w.ns, "delete", "serviceimport", "mine")

	w.kubectl("c2", "-n", w.ns, "delete", "serviceexport", "serve")
	for _, c := range []string{"c1", "c2"} {
		w.until(c, "", "-n", w.ns, "get", "serviceimports,services", "-l", "app.kubernetes.io/managed-by=strait", "-o", "name")
	}
}

// Barred namespaces take no part, and who tries reads why on the object: on exports and imports as
// a condition, on Services as an Event.
func TestBarredNamespaces(t *testing.T) {
	w := newWorld(t, tree{"barredNamespaces": []string{"team-*"}})
	const (
		global = "{apiVersion: v1, kind: Service, metadata: {name: hello, annotations: {service.cilium.io/global: 'true'}}, spec: {ports: [{port: 80}]}}\n---\n"
		more   = "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: hello}}\n---\n" +
			"{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, metadata: {name: wish}, spec: {type: ClusterSetIP, ports: [{port: 80}]}}\n"
	)
	w.ns = "team-" + w.ns
	w.namespace("c1", w.ns)
	w.apply("c1", global+more)
	const message = `{.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}`
	const why = `namespace %s is barred by the pattern "team-*" in the configuration`
	w.becomes("c1", "serviceexport/hello", message, "False Not exported: "+fmt.Sprintf(why, w.ns))
	w.becomes("c1", "serviceimport/wish", message, "False Nothing is imported here: "+fmt.Sprintf(why, w.ns)+".")
	w.event("c1", w.ns, "hello", fmt.Sprintf(why, w.ns))

	for _, ns := range []string{"kube-system", "kube-public", "kube-node-lease"} {
		_, err := w.lab.Kubectl(t.Context(), "c1", []byte(global), "-n", ns, "apply", "-f", "-")
		w.must(err)
		w.undo("c1", "-n", ns, "delete", "service", "hello")
		w.event("c1", ns, "hello", "Services of the cluster itself are barred: not global")
	}
	w.kubectl("c1", "-n", "default", "annotate", "service", "kubernetes", "service.cilium.io/global=true")
	w.undo("c1", "-n", "default", "annotate", "service", "kubernetes", "service.cilium.io/global-")
	w.event("c1", "default", "kubernetes", "Services of the cluster itself are barred: not global")
	w.until("c2", "", "get", "serviceimports", "-A", "-o", "name")
}

// Annotations that contradict each other, or say nothing, are Events on the Service, once.
func TestGlobalAnnotationsThatAreWrong(t *testing.T) {
	w := newWorld(t, nil)
	w.apply("c1", `{apiVersion: v1, kind: Service, metadata: {name: odd, annotations: {service.strait.io/global: 'true', io.cilium/global-service: 'false',
service.cilium.io/affinity: sometimes, service.cilium.io/shared: 'perhaps'}}, spec: {ports: [{port: 80}]}}`)
	said := []string{
		`metadata.annotations[io.cilium/global-service]: "false" contradicts service.strait.io/global="true"`,
		`"sometimes" is none of local, remote, none`, `"perhaps" is neither true nor false`,
	}
	for _, text := range said {
		w.event("c1", w.ns, "odd", text)
	}
	w.change("c1", nil) // the next leader
	w.kubectl("c1", "-n", w.ns, "annotate", "--overwrite", "service", "odd", "service.cilium.io/affinity=never")
	w.event("c1", w.ns, "odd", `"never" is none of`)
	// Kubernetes may report the Service too: its API server says ClusterIPNotAllocated of one that
	// it sees before its address.
	w.until("c1", "4", "-n", w.ns, "get", "events", "--field-selector", "involvedObject.kind=Service,reportingComponent=strait,reason=Misconfigured", "-o", `go-template={{len .items}}`)
	// That it has no endpoint is one Event more, of both leaders.
	w.until("c1", "1", "-n", w.ns, "get", "events", "--field-selector", "involvedObject.kind=Service,reason=NoLocalBackends", "-o", `go-template={{len .items}}`)
}

// event waits until a Service's description has an Event with the words.
func (w *world) event(cluster, ns, service, words string) {
	w.Helper()
	testutil.Eventually(w, within, func() error {
		text, err := w.lab.Kubectl(w.Context(), cluster, nil, "-n", ns, "describe", "service", service)
		if err == nil && !strings.Contains(text, words) {
			err = fmt.Errorf("%s: no event %q of Service %s/%s: %s", cluster, words, ns, service, text)
		}
		return err
	})
}

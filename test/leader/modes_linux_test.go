package leader

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/test/kubelab/apiserver"
)

// serve is a Service of one endpoint, and a headless one.
const serve = `
apiVersion: v1
kind: Service
metadata: {name: serve}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: serve-4, labels: {kubernetes.io/service-name: serve}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.12.0.1], conditions: {ready: true}}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: serve}
`

var headless = strings.NewReplacer("serve", "headless", "spec: {", "spec: {clusterIP: None, ", "10.12.0.1", "10.12.0.2").Replace(serve)

// With clusterSetIPs: cidr an import has the same address in every cluster, of strait's own range, and no derived
// Service; it keeps it when the daemons are replaced. importSlices says which imports have slices.
func TestClusterSetCIDRAndImportSlices(t *testing.T) {
	w := newWorld(t, tree{"clusterSetIPs": "cidr", "importSlices": "none"})
	w.apply("c2", serve+"---"+headless)
	const what = readiness + " {.spec.ips} {.status.endpointSliceObjects}{.metadata.annotations}"
	w.becomes("c2", "serviceimport/headless", what, "True Ready  Absent")
	w.becomes("c2", "serviceimport/serve", readiness, "True Ready")
	ips := w.kubectl("c2", "-n", w.ns, "get", "serviceimport", "serve", "-o", "jsonpath={.spec.ips}")
	if !strings.HasPrefix(ips, `["241.`) {
		t.Errorf("ips %s, want one of 241.0.0.0/8", ips)
	}
	for _, c := range []string{"c1", "c2"} {
		w.becomes(c, "serviceimport/serve", what, "True Ready "+ips+" Absent")
		w.slices(c)
		w.until(c, "", "-n", w.ns, "get", "services", "-l", "app.kubernetes.io/managed-by=strait", "-o", "name")
	}

	w.change("c1", tree{"importSlices": "headless"})
	w.slices("c1", "headless of-c2 IPv4 10.12.0.2")
	w.becomes("c1", "serviceimport/headless", what, "True Ready  Present")
	w.becomes("c1", "serviceimport/serve", what, "True Ready "+ips+" Absent")
	w.change("c1", tree{"importSlices": "all"})
	w.slices("c1", "headless of-c2 IPv4 10.12.0.2", "serve of-c2 IPv4 10.12.0.1")
	w.change("c2", nil)
	w.change("c1", tree{"importSlices": "none"})
	w.slices("c1")
	for _, c := range []string{"c1", "c2"} {
		w.becomes(c, "serviceimport/serve", what, "True Ready "+ips+" Absent")
	}
	w.kubectl("c2", "-n", w.ns, "delete", "serviceexport", "--all")
	for _, c := range []string{"c1", "c2"} {
		w.until(c, "", "-n", w.ns, "get", "serviceimports", "-o", "name")
	}
}

// hello is the example of AWS' controller: v1alpha1, and endpoints as its controller of pods would write them.
func hello(pods ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: my-amazing-service}
spec: {ports: [{name: web, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: my-amazing-service-1, labels: {kubernetes.io/service-name: my-amazing-service}}
addressType: IPv4
ports: [{name: web, port: 8080}]
endpoints: [{addresses: [%s]}]
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceExport
metadata: {name: my-amazing-service}
`, strings.Join(pods, "]}, {addresses: ["))
}

// What users of AWS' controller for EKS have works as it stands: the cluster's id is a ClusterProperty, exports are of
// v1alpha1, endpoints follow, and a second cluster adds its own to those of the first.
func TestEKSExample(t *testing.T) {
	for _, c := range []string{"c1", "c2"} {
		property := fmt.Sprintf("{apiVersion: about.k8s.io/v1alpha1, kind: ClusterProperty, metadata: {name: %s}, spec: {value: %s}}\n---\n", "cluster.clusterset.k8s.io", "of-"+c) +
			"{apiVersion: about.k8s.io/v1alpha1, kind: ClusterProperty, metadata: {name: clusterset.k8s.io}, spec: {value: set}}"
		w := &world{T: t, lab: apiserver.Lab(t, clusters)}
		w.install()
		w.must(w.lab.Apply(t.Context(), c, property))
		w.undo(c, "delete", "clusterproperties", "--all")
	}
	w := newWorld(t, nil, func(config tree) { delete(config, "cluster") })
	pods := []string{"10.11.0.1", "10.11.0.2", "10.11.0.3", "10.11.0.4", "10.11.0.5"}
	w.apply("c1", hello(pods...))
	w.becomes("c2", "serviceimports.v1alpha1.multicluster.x-k8s.io/my-amazing-service", readiness+" {.status.clusters[*].cluster}", "True Ready of-c1")
	first := "my-amazing-service of-c1 IPv4 " + strings.Join(pods, " ")
	w.slices("c2", first, "derived-"+first)
	pods = append(pods, "10.11.0.6")
	w.apply("c1", hello(pods...))
	first += " 10.11.0.6"
	w.slices("c2", first, "derived-"+first)

	w.apply("c2", hello("10.12.0.1"))
	w.becomes("c2", "serviceimport/my-amazing-service", "{.status.clusters[*].cluster}", "of-c1 of-c2")
	// c2 uses what is near, and lists all.
	w.slices("c2", first, "my-amazing-service of-c2 IPv4 10.12.0.1", "derived-my-amazing-service of-c2 IPv4 10.12.0.1")
}

package leader

import (
	"strings"
	"testing"
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

package leader

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// readyServe is serve with an endpoint that is ready or not.
func readyServe(endpoint string, ready bool) string {
	return strings.Replace(serveOf(endpoint, "80", ""), "ready: true", fmt.Sprintf("ready: %v", ready), 1)
}

// The owner of a Service reads on the Service and on its export, by kubectl describe, that its connections
// leave the cluster, that no cluster has an endpoint, that another cluster is not heard, and when that is
// over.
func TestOwnerIsTold(t *testing.T) {
	w := newWorld(t, nil)
	condition := func(kind string) string {
		return fmt.Sprintf(`{.status.conditions[?(@.type=="strait.io/%[1]s")].status} {.status.conditions[?(@.type=="strait.io/%[1]s")].reason}`, kind)
	}
	w.apply("c1", readyServe("10.11.0.1", true))
	w.apply("c2", readyServe("10.12.0.1", true))
	w.becomes("c1", "serviceexport/serve", condition("LocalBackends"), "True Sufficient")
	w.becomes("c1", "serviceimport/serve", condition("Backends"), "True Available")
	w.becomes("c1", "serviceimport/serve", condition("ClustersHeard"), "True AllHeard")

	w.apply("c1", readyServe("10.11.0.1", false))
	const none = "None of this cluster's 1 endpoints can be used: new connections go to of-c2."
	w.becomes("c1", "serviceexport/serve", condition("LocalBackends"), "False NoLocalBackends")
	w.describes("c1", "service/serve", "NoLocalBackends", none)
	w.describes("c1", "serviceexport/serve", "NoLocalBackends", none, "strait.io/LocalBackends")
	w.becomes("c2", "serviceexport/serve", condition("LocalBackends"), "True Sufficient")

	w.apply("c2", readyServe("10.12.0.1", false))
	for _, c := range []string{"c1", "c2"} {
		w.becomes(c, "serviceimport/serve", condition("Backends"), "False NoBackends")
		w.describes(c, "service/serve", "NoBackends", "No cluster has an endpoint that can be used: new connections are refused.")
	}
	w.apply("c1", readyServe("10.11.0.1", true))
	w.becomes("c1", "serviceexport/serve", condition("LocalBackends"), "True Sufficient")
	w.describes("c1", "service/serve", "Normal", "Sufficient", "This cluster's own endpoints bear what they should.")

	w.stop("c2")
	w.becomes("c1", "serviceimport/serve", condition("ClustersHeard"), "False ClusterHeld")
	w.describes("c1", "service/serve", "ClusterHeld", "Not heard: of-c2.")
	w.start("c2")
	w.becomes("c1", "serviceimport/serve", condition("ClustersHeard"), "True AllHeard")

	// A global Service has no conditions of strait's, so its Events have it.
	const global = "{apiVersion: v1, kind: Service, metadata: {name: hello, annotations: {service.strait.io/global: 'true'}}, spec: {ports: [{name: http, port: 80}]}}"
	w.apply("c1", global)
	w.describes("c1", "service/hello", "NoLocalBackends", "This cluster has no endpoint: new connections are refused.")
}

// describes waits until kubectl describe has words of an object.
func (w *world) describes(cluster, object string, words ...string) {
	w.Helper()
	testutil.Eventually(w, within, func() error {
		text, err := w.lab.Kubectl(w.Context(), cluster, nil, "-n", w.ns, "describe", object)
		flat := strings.Join(strings.Fields(text), " ")
		for _, word := range words {
			if err == nil && !strings.Contains(flat, word) {
				err = fmt.Errorf("%s: %s lacks %q:\n%s", cluster, object, word, text)
			}
		}
		return err
	})
}

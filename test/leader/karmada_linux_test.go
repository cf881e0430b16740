package leader

import (
	"fmt"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// An import that a user made, as in Karmada's example, gets a derived Service and stays the user's: it outlives the
// export, and what was made for it goes with it.
func TestImportByHand(t *testing.T) {
	w := newWorld(t, nil)
	const text = "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {name: serve}, spec: {type: ClusterSetIP, ports: [{port: 80, protocol: TCP}]}}"
	w.apply("c1", text)
	w.becomes("c1", "serviceimport/serve", readiness, "False Pending")
	uid := w.kubectl("c1", "-n", w.ns, "get", "serviceimport", "serve", "-o", "jsonpath={.metadata.uid}")
	w.apply("c2", serve)
	w.becomes("c1", "serviceimport/serve", readiness+" {.metadata.uid} {.spec.type} {.spec.ports}", "True Ready "+uid+` ClusterSetIP [{"port":80,"protocol":"TCP"}]`)
	w.becomes("c1", "serviceimport/serve", "{.spec.ips}", w.kubectl("c1", "-n", w.ns, "get", "service", "derived-serve", "-o", "jsonpath={.spec.clusterIPs}"))
	w.slices("c1", "serve of-c2 IPv4 10.12.0.1", "derived-serve of-c2 IPv4 10.12.0.1")
	w.apply("c1", text) // the user's own client finds nothing to undo
	w.becomes("c1", "serviceimport/serve", readiness+" {.metadata.uid} {.spec.ips}", "True Ready "+uid+" "+
		w.kubectl("c1", "-n", w.ns, "get", "service", "derived-serve", "-o", "jsonpath={.spec.clusterIPs}"))

	w.kubectl("c2", "-n", w.ns, "delete", "serviceexport", "serve")
	w.becomes("c1", "serviceimport/serve", readiness+" {.metadata.uid}", "False Pending "+uid)
	w.kubectl("c1", "-n", w.ns, "delete", "serviceimport", "serve")
	start := time.Now()
	testutil.Eventually(t, within, func() error {
		if left := w.kubectl("c1", "-n", w.ns, "get", "services,serviceimports,endpointslices", "-o", "name"); left != "" {
			return fmt.Errorf("left: %s", left)
		}
		return nil
	})
	t.Logf("all was gone after %v", time.Since(start))
}

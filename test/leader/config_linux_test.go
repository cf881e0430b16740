package leader

import (
	"context"
	"crypto/rand"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/object"
)

// newConfigured is a world whose clusters pin each other. That of c1 has GKE's kinds; that of c2 accepts its
// configuration, in the namespaces that begin with the test's name.
func newConfigured(t *testing.T) *world {
	t.Helper()
	dir, pins := t.TempDir(), authority.Pins{}
	for i, c := range []clustermesh.ClusterName{"of-c1", "of-c2"} {
		root, err := authority.Generate(rand.Reader)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, string(c)+".key"), []byte(root.Base64()), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		pins[c] = authority.Pin{
			Cluster: c, Roots: []authority.PublicKey{root.Public()}, Namespaces: []string{strings.ToLower(t.Name()) + "-*"},
			Nodes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(1 + i), 0}), 24)},
			Pods:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(11 + i), 0, 0}), 16)},
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "pins.yaml"), pins.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil, func(config tree) {
		cluster := config["cluster"].(string)
		config["authority"] = tree{"rootFile": filepath.Join(dir, cluster+".key"), "pinsFile": filepath.Join(dir, "pins.yaml")}
		if cluster == "of-c2" {
			config["source"].(tree)["kubernetes"].(tree)["acceptConfigFrom"] = []string{"of-c1"}
		}
	})
	w.gkeKinds("c1")
	return w
}

// reinstall gives the chart of a cluster a value.
func (w *world) reinstall(ctx context.Context, cluster, set string) {
	w.Helper()
	out, err := exec.CommandContext(ctx, w.bin("strait"), "install", "--kubeconfig", w.lab.Kubeconfig(), "--context", cluster, "--wait=0", "--set", set).CombinedOutput()
	if err != nil {
		w.Errorf("install with %s: %v: %s", set, err, out)
	}
}

// TestConfigCluster: what is written in the config cluster is made in a cluster that accepts its configuration,
// if its admission policy knows of it; it goes when it is taken back there, or accepted no more, and stays
// while the config cluster is away.
func TestConfigCluster(t *testing.T) {
	w := newConfigured(t)
	name := object.DerivedName(w.ns, "whereami-mcs")
	const what = `{.spec.clusterIP} {.spec.selector.app} {.metadata.labels.strait\.io/config-cluster}{.metadata.ownerReferences}`
	w.apply("c1", multiService)
	w.apply("c1", multiIngress)
	w.becomes("c1", "mcs/whereami-mcs", readiness, "True InForce")

	w.status("c2", "headless ones of MultiClusterServices have a selector")
	w.reinstall(t.Context(), "c2", "acceptConfigFrom={of-c1}")
	t.Cleanup(func() { w.reinstall(context.Background(), "c2", "acceptConfigFrom=null") })
	w.becomes("c2", "service/"+name, what, "None whereami of-c1")
	w.becomes("c2", "ingress/whereami-ingress", `{.spec.ingressClassName} {.spec.defaultBackend.service.port.number} {.metadata.ownerReferences}`, "some 8080")
	w.becomes("c1", "mcs/whereami-mcs", `{.status.conditions[0].message}`,
		"Service "+w.ns+"/"+name+" selects pods of this cluster, of-c1; by this object, the same Service selects pods of of-c2")

	// A cluster that is not listed has none.
	w.apply("c1", strings.Replace(multiService, "spec:\n", "spec:\n  clusters: [{link: anywhere/of-c1}]\n", 1))
	w.until("c2", "", "-n", w.ns, "get", "service", name, "-o", "name", "--ignore-not-found")
	w.apply("c1", multiService)
	w.becomes("c2", "service/"+name, what, "None whereami of-c1")

	// The config cluster is away, and the leader that obeys it starts anew.
	uid := w.kubectl("c2", "-n", w.ns, "get", "service", name, "-o", "jsonpath={.metadata.uid}")
	w.stop("c1")
	w.stop("c2")
	w.start("c2")
	w.status("c2", "of-c1 ! held")
	time.Sleep(5 * time.Second)
	w.becomes("c2", "service/"+name, "{.metadata.uid}", uid)
	w.start("c1")

	// In a namespace that the pin closes, it says nothing.
	closed := strings.Replace(w.ns, "testconfigcluster", "closed", 1)
	for _, c := range []string{"c1", "c2"} {
		w.namespace(c, closed)
	}
	_, err := w.lab.Kubectl(w.Context(), "c1", []byte(multiService), "-n", closed, "apply", "-f", "-")
	w.must(err)
	w.status("c2", "MultiClusterService.networking.gke.io "+closed+"/whereami-mcs of cluster of-c1")
	w.until("c2", "", "-n", closed, "get", "services", "-o", "name")

	w.kubectl("c1", "-n", w.ns, "delete", "mcs,mci", "--all")
	w.until("c2", "", "-n", w.ns, "get", "services,ingresses", "-o", "name")
	w.apply("c1", multiService)
	w.becomes("c2", "service/"+name, what, "None whereami of-c1")
	w.change("c2", tree{"acceptConfigFrom": []string{}})
	w.until("c2", "", "-n", w.ns, "get", "service", name, "-o", "name", "--ignore-not-found")
}

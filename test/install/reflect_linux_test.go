package install

import (
	"context"
	"strings"
	"testing"

	"strait.io/strait/test/kubelab/apiserver"
)

// TestScenarioA4: Services that have a label exist in the other cluster, and follow every change; what is
// there already stays. The commands are those of the pages for Service-Reflector and for Linkerd.
func TestScenarioA4(t *testing.T) {
	r := newReplicator(t)
	lab := apiserver.Lab(t, 2)
	for _, c := range []string{"c1", "c2"} {
		t.Cleanup(func() {
			for _, ns := range []string{"shop", "mine"} {
				_, _ = lab.Kubectl(context.Background(), c, nil, "delete", "namespace", ns, "--ignore-not-found")
			}
		})
	}
	r.apply("c1", "shop", "cart", 80, "10.1.0.1")
	r.apply("c1", "shop", "secret", 80, "10.1.0.2")
	r.apply("c1", "mine", "web", 80, "10.1.0.3")
	r.apply("c2", "mine", "web", 80, "10.2.0.3")
	r.kubectl("c1", "-n", "mine", "label", "service", "web", "reflect=true")

	r.page("docs/from/service-reflector.md")
	if got := r.addrs("c2", "shop", "cart"); got != "10.1.0.1" {
		t.Errorf("after the page, c2 has %q", got)
	}
	if got := r.mirrors("c2"); strings.Contains(got, "secret") || strings.Contains(got, "web") {
		t.Errorf("c2 has %s", got)
	}
	if got := r.addrs("c2", "mine", "web"); got != "10.2.0.3" {
		t.Errorf("c2's own Service has %q", got)
	}

	stop := r.watch("docs/from/service-reflector.md")
	for _, addrs := range [][]string{{"10.1.0.1", "10.1.0.4", "10.1.0.5"}, {"10.1.0.4"}, nil, {"10.1.0.6"}} {
		r.apply("c1", "shop", "cart", 80, addrs...)
		// The user's label stays on the Service, because apply does not know it.
		r.becomes("c2", "shop", "cart", strings.Join(addrs, " "))
	}
	r.kubectl("c1", "-n", "shop", "label", "service", "cart", "reflect-")
	r.becomes("c2", "shop", "cart", "")
	stop()
	if got := r.mirrors("c2"); got != "" {
		t.Errorf("without the label, c2 has %s", got)
	}

	r.kubectl("c1", "-n", "shop", "label", "service", "cart", "mirror.linkerd.io/exported=true")
	r.page("docs/from/linkerd.md")
	if got := r.addrs("c2", "shop", "cart-east"); got != "10.1.0.6" {
		t.Errorf("after the page for Linkerd, c2 has %q", got)
	}
}

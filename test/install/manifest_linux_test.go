package install

import (
	"os"
	"strings"
	"testing"

	"strait.io/strait/test/kubelab/apiserver"
)

// TestManifestIsStrict: an API server that refuses fields that it does not know takes all objects
// of the manifest, and warns of none.
func TestManifestIsStrict(t *testing.T) {
	u := newUser(t)
	text, err := os.ReadFile("../../install/manifests/strait.yaml")
	if err != nil {
		t.Fatal(err)
	}
	u.kubectl("c1", "create", "namespace", "strait-system") // a dry run makes none
	defer u.kubectl("c1", "delete", "namespace", "strait-system")
	apply := func(text string) (string, error) {
		return apiserver.Lab(t, 2).Kubectl(t.Context(), "c1", []byte(text), "apply", "--server-side", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", "-")
	}
	out, err := apply(string(text))
	if want := strings.Count(string(text), "\n---\n"); err != nil || strings.Count(strings.TrimSpace(out), "\n")+1 != want {
		t.Errorf("want %d objects: %v\n%s", want, err, out)
	}
	for what, change := range map[string][2]string{
		"a field that there is not": {"replicas: 2", "replicsa: 2"},
		"a port with a warning":     {"hostPort: 9964", "protocol: TCP"},
	} {
		if _, err := apply(strings.Replace(string(text), change[0], change[1], 1)); err == nil {
			t.Errorf("it takes %s", what)
		}
	}
}

// TestMetricsPort: an upgrade moves the daemon, its probes and the port that its pods name,
// together.
func TestMetricsPort(t *testing.T) {
	u := newUser(t)
	u.does(with(installC1, "--wait=false"))
	u.uninstallAtEnd("c1")
	u.does([]string{"upgrade", "--context", "c1", "--wait=false", "--set", "metrics.listen=127.0.0.1:9970"})
	got := u.kubectl("c1", "-n", "strait-system", "get", "daemonset", "strait", "-o",
		"jsonpath={range .spec.template.spec.containers[0]}{.ports[*].name} {.ports[*].containerPort} {.readinessProbe.httpGet.port}{end}")
	if got != "metrics gossip 9970 7946 9970" {
		t.Errorf("ports and probe: %s", got)
	}
}

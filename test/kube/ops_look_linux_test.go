package kube

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// testLook: a person who has only the Role strait-view-reader sees all nodes of both clusters on
// one screen, and asks any of them. The same person can neither enter pods, nor read other Secrets,
// nor change a thing.
func testLook(t *testing.T, o *ops) {
	config := o.looker(t)
	strait := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), o.strait.CLI, append(args, "--kubeconfig", config)...).CombinedOutput()
		return string(out), err
	}
	testutil.Eventually(t, 60*time.Second, func() error {
		out, err := strait("status", "--context", "c1", "--context", "c2")
		if err != nil || !strings.Contains(out, "4 nodes of 2 clusters") {
			return fmt.Errorf("status of both clusters: %w\n%s", err, out)
		}
		return nil
	})
	began := time.Now()
	out, err := strait("status", "--context", "c1", "--context", "c2", "-o", "json")
	must(t, err)
	t.Logf("the status of four nodes took %s", time.Since(began).Round(time.Millisecond))
	var list struct {
		Items []struct{ Cluster, Node string }
	}
	must(t, json.Unmarshal([]byte(out), &list))
	for _, n := range list.Items {
		out, err := strait("status", "--context", n.Cluster, "--node", n.Node)
		if err != nil || !strings.Contains(out, n.Cluster+"/"+n.Node) {
			t.Errorf("status of %s/%s: %v\n%s", n.Cluster, n.Node, err, out)
		}
	}
	if out, err := strait("explain", "default/ops-c2", "--context", "c1", "--node", "c1n2"); err != nil || !strings.Contains(out, "c2") {
		t.Errorf("explain by c1/c1n2: %v\n%s", err, out)
	}
	for _, args := range []string{
		"exec -n strait-system ds/strait -- /strait status", "get secret -n strait-system strait-clusterset", "get pods -n strait-system",
		"delete secret -n strait-system strait-view", "get --raw /api/v1/namespaces/default/services/https:kubernetes:443/proxy/",
		"create --raw /api/v1/namespaces/strait-system/services/https:strait-view:https/proxy/v1/status -f /dev/null",
	} {
		argv := append([]string{"--kubeconfig", config, "--context", "c1"}, strings.Fields(args)...)
		if out, err := o.Kubectl(t.Context(), "c1", nil, argv...); err == nil || !strings.Contains(err.Error()+out, "orbidden") {
			t.Errorf("kubectl %s: %v\n%s", args, err, out)
		}
	}
	o.noSecretIn(t, config)
	// Another pod reaches the port, and without the token gets no answer.
	o.shell(t, "c1", "nosy", "c1n1", "", idle)
	ip := kubectl(t, "c1", "-n", "strait-system", "get", "service", "strait-view", "-o", "jsonpath={.spec.clusterIP}")
	said, err := inPod(t.Context(), o.Lab, "c1", "nosy", "curl", "-sk", "-m", "5", "-w", "%{http_code}", "https://"+ip+"/v1/status")
	if err != nil || !strings.Contains(said, "401") || strings.Contains(said, "clusters") {
		t.Errorf("a pod without the token: %v\n%s", err, said)
	}
}

// looker returns the kubeconfig of an account that has only the Role strait-view-reader, until the test
// ends. Its contexts are c1 and c2.
func (o *ops) looker(t *testing.T) (config string) {
	t.Helper()
	config = filepath.Join(t.TempDir(), "kubeconfig")
	for _, c := range []string{"c1", "c2"} {
		kubectl(t, c, "-n", "strait-system", "rollout", "status", "deployment/strait-view", "--timeout=120s")
		kubectl(t, c, "-n", "default", "create", "serviceaccount", "looker")
		kubectl(t, c, "-n", "strait-system", "create", "rolebinding", "look", "--role=strait-view-reader", "--serviceaccount=default:looker")
		t.Cleanup(func() {
			for _, object := range []string{"-n=strait-system rolebinding/look", "-n=default serviceaccount/looker"} {
				if _, err := o.Kubectl(context.Background(), c, nil, append([]string{"delete"}, strings.Fields(object)...)...); err != nil {
					t.Error(err)
				}
			}
		})
		token := strings.TrimSpace(kubectl(t, c, "-n", "default", "create", "token", "looker"))
		server := kubectl(t, c, "config", "view", "--raw", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
		ca := kubectl(t, c, "config", "view", "--raw", "--minify", "--flatten", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}")
		for _, args := range [][]string{
			{"set-cluster", c, "--server", server}, {"set", "clusters." + c + ".certificate-authority-data", ca},
			{"set-credentials", c, "--token", token}, {"set-context", c, "--cluster", c, "--user", c},
		} {
			kubectl(t, c, append([]string{"config", "--kubeconfig", config}, args...)...)
		}
	}
	return config
}

// noSecretIn makes a support bundle as that person, asks it, and looks in it for every key that
// there is.
func (o *ops) noSecretIn(t *testing.T, config string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	out, err := exec.CommandContext(t.Context(), o.strait.CLI, "support", "bundle", file, "--context", "c1", "--context", "c2", "--kubeconfig", config).CombinedOutput()
	if err != nil {
		t.Fatalf("support bundle: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(t.Context(), o.strait.CLI, "status", "--file", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "4 nodes of 2 clusters") {
		t.Errorf("status of the bundle: %v\n%s", err, out)
	}
	compressed, err := os.Open(file)
	must(t, err)
	defer compressed.Close()
	z, err := gzip.NewReader(compressed)
	must(t, err)
	bundle, err := io.ReadAll(z)
	must(t, err)
	for _, part := range []string{`"LogList"`, "ready: the first plan is applied"} {
		if !bytes.Contains(bundle, []byte(part)) {
			t.Errorf("the bundle has no logs: it lacks %q", part)
		}
	}
	secrets := map[string][]byte{}
	for _, c := range o.Topology.Clusters {
		var all struct {
			Items []struct {
				Metadata struct{ Name string }
				Data     map[string][]byte
			}
		}
		must(t, json.Unmarshal([]byte(kubectl(t, c.Name, "-n", "strait-system", "get", "secrets", "-o", "json")), &all))
		for _, s := range all.Items {
			for key, value := range s.Data {
				secrets[c.Name+" "+s.Metadata.Name+" "+key] = value
			}
		}
		for _, n := range c.Nodes {
			for _, name := range []string{"node.key", "wireguard.key"} {
				value, err := o.OnNode(t.Context(), n.Name, "base64", "-w0", "/var/lib/strait/"+name)
				must(t, err)
				raw, err := base64.StdEncoding.DecodeString(value)
				must(t, err)
				secrets[n.Name+" "+name] = raw
			}
		}
	}
	looked := 0
	for name, value := range secrets {
		text := bytes.TrimSpace(value)
		if strings.HasSuffix(name, " seeds") || len(text) < 16 {
			continue
		}
		looked++
		for _, form := range [][]byte{text, []byte(base64.StdEncoding.EncodeToString(text)), []byte(hex.EncodeToString(text))} {
			if bytes.Contains(bundle, form) {
				t.Errorf("the bundle has the secret %s", name)
			}
		}
	}
	if want := 2*len(o.Topology.Clusters) + 4; looked < want {
		t.Errorf("looked for %d secrets, want at least %d", looked, want)
	}
}

package leader

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// viewPod, for an address, is a pod of strait-view without a node, and what a controller would make of it: the API
// server leads to no address that is not a pod's.
const viewPod = `
apiVersion: v1
kind: Pod
metadata: {name: relay, namespace: strait-system}
spec: {serviceAccountName: strait-view, automountServiceAccountToken: false, containers: [{name: view, image: none}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: strait-view-relay, namespace: strait-system, labels: {kubernetes.io/service-name: strait-view}}
addressType: IPv4
endpoints: [{addresses: [%[1]s], targetRef: {kind: Pod, name: relay, namespace: strait-system}}]
ports: [{name: https, port: 8443, protocol: TCP}]
`

// TestView: a person with the Role strait-view-reader asks a daemon through the API server and strait-view: with
// the token, and with nothing else. One without the Role is refused by the API server.
func TestView(t *testing.T) {
	w := newWorldOf(t, 1, tree{}, func(config tree) { config["viewGroup"] = 65532 })
	token, err := base64.StdEncoding.DecodeString(w.kubectl("c1", "-n", "strait-system", "get", "secret", api.ViewName, "-o", "jsonpath={.data."+api.ViewTokenKey+"}"))
	w.must(err)
	w.relay(token)
	at := w.clusters[0].Gateway
	_, err = w.lab.Kubectl(t.Context(), "c1", fmt.Appendf(nil, viewPod, at), "apply", "-f", "-")
	w.must(err)
	w.undo("c1", "-n", "strait-system", "delete", "pod/relay", "endpointslice/strait-view-relay", "rolebinding/look", "--ignore-not-found", "--force")
	w.kubectl("c1", "-n", "strait-system", "patch", "pod", "relay", "--subresource=status", "-p", fmt.Sprintf(`{"status": {"podIP": %[1]q, "podIPs": [{"ip": %[1]q}]}}`, at))
	w.kubectl("c1", "-n", "strait-system", "create", "rolebinding", "look", "--role=strait-view-reader", "--user=alice")

	ask := w.asking("c1")
	path := "/api/v1/namespaces/strait-system/services/" + api.ViewProxy + "/proxy/v1/status"
	testutil.Eventually(t, within, func() error {
		status, body, err := ask("GET", path, "alice", string(token))
		var a api.StatusAnswer
		if err = errors.Join(err, json.Unmarshal([]byte(body), &a)); err == nil && (status != 200 || a.Cluster != "of-c1" || a.Node != "c1-node") {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
	if status, body, err := ask("GET", path+"?node=*", "alice", string(token)); err != nil || status != 200 || !strings.Contains(body, `"NodeAnswerList"`) {
		t.Errorf("all nodes: %d %s %v", status, body, err)
	}
	for _, c := range []struct {
		what, method, path, as, token string
		status                        int
		part                          string
	}{
		{"no token", "GET", path, "alice", "", 401, api.ViewTokenHeader},
		{"another token", "GET", path, "alice", strings.Repeat("x", len(token)), 401, api.ViewTokenHeader},
		{"writing", "POST", path, "alice", string(token), 403, "forbidden"},
		{"another path", "GET", strings.Replace(path, "/v1/status", "/metrics", 1), "alice", string(token), 404, "/v1/"},
		{"without TLS", "GET", strings.Replace(path, "https:", "http:", 1), "alice", string(token), 403, "forbidden"},
		{"another person", "GET", path, "bob", string(token), 403, "forbidden"},
	} {
		if status, body, err := ask(c.method, c.path, c.as, c.token); err != nil || status != c.status || !strings.Contains(body, c.part) {
			t.Errorf("%s: %d %s %v", c.what, status, body, err)
		}
	}
}

// relay runs what a pod of strait-view runs, where the API server reaches it.
func (w *world) relay(token []byte) {
	w.Helper()
	file := filepath.Join(w.dir, "token")
	w.must(os.WriteFile(file, token, 0o600))
	cmd := exec.Command("nsenter", "--net=/run/netns/"+w.lab.Name+"-fabric", w.bin("straitd"), "view",
		"--listen", w.clusters[0].Gateway.String()+":8443", "--socket", filepath.Join(w.dir, "c1", "run", "view", "strait.sock"), "--token", file)
	cmd.Stderr = os.Stderr
	w.must(cmd.Start())
	w.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			w.Errorf("straitd view: %v", err)
		}
	})
}

// asking returns a function that sends a request to an API server in the name of a person.
func (w *world) asking(cluster string) func(method, path, as, token string) (status int, body string, err error) {
	w.Helper()
	text, err := os.ReadFile(w.lab.ConfigOf(cluster))
	w.must(err)
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	w.must(json.Unmarshal(text, &config))
	cert, err := tls.X509KeyPair(config.Users[0].User.Cert, config.Users[0].User.Key)
	w.must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}}, Timeout: within}
	w.Cleanup(client.CloseIdleConnections)
	return func(method, path, as, token string) (int, string, error) {
		r, err := http.NewRequestWithContext(context.Background(), method, config.Clusters[0].Cluster.Server+path, nil)
		if err != nil {
			return 0, "", err
		}
		r.Header.Set("Impersonate-User", as)
		if token != "" {
			r.Header.Set(api.ViewTokenHeader, token)
		}
		response, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, string(body), err
	}
}

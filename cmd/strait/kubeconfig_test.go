package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/cli/fleet"
	"strait.io/strait/internal/testutil"
)

func TestMain(m *testing.M) { testutil.WithoutClusters(m) }

// TestShellsKubeconfig: commands of this package's tests do not reach the clusters of the shell that runs
// them. The test runs itself with a kubeconfig and a home that have such a cluster.
func TestShellsKubeconfig(t *testing.T) {
	const inside = "STRAIT_TEST_SHELLS_KUBECONFIG"
	if os.Getenv(inside) != "" {
		e := world("status", "--context", "shells")
		e.Reach = fleet.Reach
		if r := e.run(t); r.code != cli.ExitUsage || !strings.Contains(r.stderr, `context "shells" does not exist`) {
			t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
		}
		return
	}
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Method + " " + r.URL.Path:
		default:
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	home := t.TempDir()
	text := "apiVersion: v1\nkind: Config\ncurrent-context: shells\ncontexts: [{name: shells, context: {cluster: shells, user: shells}}]\n" +
		"clusters: [{name: shells, cluster: {server: '" + server.URL + "'}}]\nusers: [{name: shells, user: {}}]\n"
	for _, file := range []string{filepath.Join(home, "config"), filepath.Join(home, ".kube", "config")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, kubeconfig := range []string{filepath.Join(home, "config"), ""} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestShellsKubeconfig$")
		cmd.Env = append(os.Environ(), inside+"=1", "HOME="+home, "KUBECONFIG="+kubeconfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("KUBECONFIG=%q: %v\n%s", kubeconfig, err, out)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the shell's cluster was asked: %s", <-asked)
	}
}

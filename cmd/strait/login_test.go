package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/cli/fleet"
)

// TestLogin asks an API server with kubectl's flags, which kubeconfigs of machines often leave out.
func TestLogin(t *testing.T) {
	heads := make(chan http.Header, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case heads <- r.Header:
		default:
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncontexts: [{name: c1, context: {cluster: c1, user: c1}}]\n" +
		"clusters: [{name: c1, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: c1, user: {}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	login := []string{"--kubeconfig", file, "--context", "c1", "--server", server.URL, "--as", "jane", "--as-group", "devs", "--as-group", "ops", "--request-timeout", "5s"}
	for name, command := range map[string][]string{
		"a query":                         {"status"},
		"a list":                          {"services", "shop/cart"},
		"a command that changes clusters": {"clusterset", "status"},
	} {
		t.Run(name, func(t *testing.T) {
			e := world(append(command, login...)...)
			e.Reach = fleet.Reach
			if got := e.run(t); got.code == 0 {
				t.Fatalf("refused, yet exit 0: %s", got.stdout)
			}
			head := <-heads
			if who, groups := head.Get("Impersonate-User"), head.Values("Impersonate-Group"); who != "jane" || len(groups) != 2 {
				t.Errorf("the API server was asked as %q of %q", who, groups)
			}
			for len(heads) > 0 {
				<-heads
			}
		})
	}
}

package testutil

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// WithoutClusters is a TestMain for tests that run commands as users do: without the kubeconfig and the
// home of the shell that started them, so that no test can reach a cluster that it does not name a file for.
func WithoutClusters(m *testing.M) {
	home, err := os.MkdirTemp("", "strait-home-")
	if err == nil {
		// KUBECONFIG counts before the file in the home, which client-go looks up before this.
		file := filepath.Join(home, "kubeconfig")
		err = os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\n"), 0o600)
		os.Setenv("KUBECONFIG", file)
		os.Setenv("HOME", home)
		os.Unsetenv("KUBERNETES_SERVICE_HOST") // or else client-go takes a pod's account
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a home without clusters:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(home); err != nil {
		fmt.Fprintln(os.Stderr, "remove the home without clusters:", err)
		code = 1
	}
	os.Exit(code)
}
